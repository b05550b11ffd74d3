package boottest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"
)

// Where the agent listens: in a container a socket in the directory that it shares with the world, in a virtual machine
// a serial port, of which QEMU has the other end as a socket at the same place.
const (
	agentSocket = "/boottest/agent"
	agentPort   = "/dev/virtio-ports/boottest"
)

// call is a script for the agent, or its answer. Without a script it only asks if the agent is listening.
type call struct {
	ID     int64
	Script string
	Output string
	Status int
}

// ask has the agent at a socket run a script. The connection is made anew for each: it does not outlive a boot. What is
// sent to a serial port before the agent has opened it is lost, and a script cannot be sent twice; so a call without one
// goes first, as often as need be.
func ask(ctx context.Context, socket, script string) (string, int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", 0, err
	}
	defer conn.Close()
	answers := make(chan call, 16)
	go func() {
		defer close(answers)
		lines := bufio.NewReader(conn)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var answer call
			if json.Unmarshal(line, &answer) != nil {
				continue // the rest of an answer that nobody waited for
			}
			select {
			case answers <- answer:
			case <-ctx.Done():
				return
			}
		}
	}()
	id := time.Now().UnixNano()
	requests := json.NewEncoder(conn)
	again := time.NewTicker(300 * time.Millisecond)
	defer again.Stop()
	listening := false
	if err := requests.Encode(call{ID: -id}); err != nil {
		return "", 0, err
	}
	for {
		select {
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case answer, ok := <-answers:
			switch {
			case !ok:
				return "", 0, io.ErrUnexpectedEOF
			case answer.ID == id:
				return answer.Output, answer.Status, nil
			case answer.ID == -id && !listening:
				listening = true
				err = requests.Encode(call{ID: id, Script: script})
			}
		case <-again.C:
			if !listening {
				err = requests.Encode(call{ID: -id})
			}
		}
		if err != nil {
			return "", 0, err
		}
	}
}

// serveAgent runs scripts as long as the guest lives.
func serveAgent() error {
	if _, err := os.Stat("/boottest"); err != nil {
		return servePort()
	}
	_ = os.Remove(agentSocket) // of the boot before
	l, err := net.Listen("unix", agentSocket)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			_ = answer(conn)
			conn.Close()
		}()
	}
}

// servePort answers one call after the other. As long as nobody is connected reading gives the end of the file.
func servePort() error {
	for {
		port, err := os.OpenFile(agentPort, os.O_RDWR, 0)
		if err == nil {
			err = answer(port)
			port.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func answer(conn io.ReadWriter) error {
	calls := bufio.NewReader(conn)
	for {
		line, err := calls.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var c call
		if json.Unmarshal(line, &c) != nil {
			continue // the rest of a call that was cut off
		}
		if c.Script != "" {
			c = execute(c)
		}
		if err := json.NewEncoder(conn).Encode(c); err != nil {
			return err
		}
	}
}

func execute(c call) call {
	cmd := exec.Command("bash", "-c", c.Script)
	cmd.Env = append(os.Environ(), "HOME=/root", "LC_ALL=C", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0")
	out, err := cmd.CombinedOutput()
	done := call{ID: c.ID, Output: string(out), Status: cmd.ProcessState.ExitCode()}
	if err != nil && done.Status <= 0 {
		done.Output, done.Status = done.Output+err.Error(), -1
	}
	return done
}
