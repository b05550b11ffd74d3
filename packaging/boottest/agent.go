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

// call is a script for the agent, or its answer.
type call struct {
	ID     int64
	Script string
	Output string
	Status int
}

// ask has the agent at a socket run a script. The connection is made anew for each: it does not outlive a boot.
func ask(ctx context.Context, socket, script string) (string, int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c := call{ID: time.Now().UnixNano(), Script: script}
	if err := json.NewEncoder(conn).Encode(c); err != nil {
		return "", 0, err
	}
	answers := bufio.NewReader(conn)
	for {
		line, err := answers.ReadBytes('\n')
		if err != nil {
			return "", 0, errors.Join(err, ctx.Err())
		}
		var answer call
		if json.Unmarshal(line, &answer) == nil && answer.ID == c.ID { // else of a call that nobody waits for any more
			return answer.Output, answer.Status, nil
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
		cmd := exec.Command("bash", "-c", c.Script)
		cmd.Env = append(os.Environ(), "HOME=/root", "LC_ALL=C", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0")
		out, err := cmd.CombinedOutput()
		c.Script, c.Output, c.Status = "", string(out), cmd.ProcessState.ExitCode()
		if err != nil && c.Status <= 0 {
			c.Output, c.Status = c.Output+err.Error(), -1
		}
		if err := json.NewEncoder(conn).Encode(c); err != nil {
			return err
		}
	}
}
