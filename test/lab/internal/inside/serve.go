// Package inside is what runs as PID 1 of a lab's machines: it makes the guest's root, starts and reaps processes, and
// answers calls from the program that started it, for as long as that program lives.
package inside

import (
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// ControlFD is the descriptor of the socket from which calls are read.
const ControlFD = 3

// None is the argument or the reply of a call that has none.
type None struct{}

// Serve answers calls to the named services and does the work that they hand to the first thread. It returns only if
// it cannot begin: when the other end of the socket is closed it ends the process, and with it the machine.
func Serve(services map[string]any, calls FirstThread) error {
	runtime.LockOSThread()
	// Nothing that is mounted here shall be seen by the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	unix.CloseOnExec(ControlFD)
	conn, err := net.FileConn(os.NewFile(ControlFD, "control"))
	if err != nil {
		return err
	}
	server := rpc.NewServer()
	for name, service := range services {
		err = errors.Join(err, server.RegisterName(name, service))
	}
	if err != nil {
		return err
	}
	go server.ServeConn(lifeline{conn})
	for f := range calls {
		f()
	}
	return nil
}

// FirstThread takes functions to the process's first thread, the only one whose namespaces survive an exec.
type FirstThread chan func()

func (t FirstThread) do(f func() error) error {
	done := make(chan error)
	t <- func() { done <- f() }
	return <-done
}

// lifeline ends the process as soon as the other end is closed. The rpc server itself would first wait for the calls
// that are under way.
type lifeline struct{ net.Conn }

// Read does not return from the end of the stream.
func (l lifeline) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if err != nil {
		os.Exit(0)
	}
	return n, nil
}
