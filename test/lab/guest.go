package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Guest is the virtual machine.
type Guest struct {
	*Machine
	files
	systemd bool
	daemons map[Daemon]daemonProcess // without systemd
}

// daemonProcess is a daemon that was started.
type daemonProcess struct {
	*os.Process
	gone chan struct{}
}

// SetBootID makes the kernel say that this is another boot.
func (g *Guest) SetBootID(id string) error {
	return g.root.WriteFile("lab/boot_id", []byte(id+"\n"), 0o644)
}

// Start starts a daemon and waits until it listens.
func (g *Guest) Start(ctx context.Context, d Daemon) error {
	if g.systemd {
		_, err := g.Run(ctx, "systemctl", "start", string(d))
		return err
	}
	program, ok := programs[d]
	if !ok {
		return fmt.Errorf("lab: no daemon %q", d)
	}
	ready := strings.TrimPrefix(program.ready, "/")
	if ready != "" {
		if err := g.root.RemoveAll(ready); err != nil {
			return err
		}
	}
	log, err := g.root.OpenFile("lab/"+string(d)+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program.argv[0], program.argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = smallEnv(), log, log, &syscall.SysProcAttr{Setsid: true}
	if err := g.in(all, cmd.Start); err != nil {
		return err
	}
	p := daemonProcess{cmd.Process, make(chan struct{})}
	g.daemons[d] = p
	go func() {
		_ = cmd.Wait()
		close(p.gone)
	}()
	if ready == "" {
		return nil
	}
	return poll(ctx, func() error {
		fi, err := g.root.Lstat(ready)
		if err == nil && fi.Mode().Type() == fs.ModeSocket && fi.Mode().Perm()&0o002 == 0 {
			return fmt.Errorf("%s is not open to all users yet", ready) // dbus-daemon opens it last
		}
		return err
	})
}

// Stop ends a daemon and waits until it is gone.
func (g *Guest) Stop(ctx context.Context, d Daemon) error {
	if g.systemd {
		_, err := g.Run(ctx, "systemctl", "stop", string(d))
		return err
	}
	return g.end(ctx, d, unix.SIGTERM)
}

// Kill ends a daemon with SIGKILL and waits until it is gone. With systemd its unit may start it again.
func (g *Guest) Kill(ctx context.Context, d Daemon) error {
	if g.systemd {
		return g.Signal(ctx, d, unix.SIGKILL)
	}
	return g.end(ctx, d, unix.SIGKILL)
}

// Restart is Stop and Start.
func (g *Guest) Restart(ctx context.Context, d Daemon) error {
	if g.systemd {
		_, err := g.Run(ctx, "systemctl", "restart", string(d))
		return err
	}
	if err := g.Stop(ctx, d); err != nil {
		return err
	}
	return g.Start(ctx, d)
}

// Signal sends a signal to a daemon. One that is stopped with SIGSTOP does not answer, until SIGCONT.
func (g *Guest) Signal(ctx context.Context, d Daemon, sig syscall.Signal) error {
	if g.systemd {
		_, err := g.Run(ctx, "systemctl", "kill", "--kill-who=main", "-s", unix.SignalName(sig), string(d))
		return err
	}
	p, ok := g.daemons[d]
	if !ok {
		return fmt.Errorf("lab: %s was not started", d)
	}
	return p.Process.Signal(sig)
}

func (g *Guest) end(ctx context.Context, d Daemon, sig syscall.Signal) error {
	if err := g.Signal(ctx, d, sig); err != nil {
		return err
	}
	<-g.daemons[d].gone
	return nil
}

// poll calls until there is no error, and gives the last one when the time is up.
func poll(ctx context.Context, f func() error) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(wait):
		}
	}
}
