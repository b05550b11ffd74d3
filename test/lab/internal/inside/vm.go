package inside

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// AgentPort is the serial port of a virtual machine that its agent answers calls at, and AgentHello the first line from
// there. AgentPortName is what QEMU calls it.
const (
	AgentPortName = "lab"
	AgentPort     = "/dev/virtio-ports/" + AgentPortName
	AgentHello    = "lab agent\n"
)

// Command is a program to run.
type Command struct{ Argv, Env []string }

// Agent is the service that runs commands in a virtual machine.
type Agent struct{}

// Done is what came of a command.
type Done struct {
	Stdout, Stderr string
	Err            string // empty: its status was 0
}

// Run runs a command to its end.
func (Agent) Run(c Command, done *Done) error {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		done.Err = err.Error()
	}
	done.Stdout, done.Stderr = stdout.String(), stderr.String()
	return nil
}

// AgentMain answers calls for as long as the virtual machine lives.
func AgentMain() error {
	port, err := os.OpenFile(AgentPort, os.O_RDWR, 0)
	for ; errors.Is(err, os.ErrNotExist); port, err = os.OpenFile(AgentPort, os.O_RDWR, 0) {
		time.Sleep(20 * time.Millisecond) // udev has not seen it yet
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(port, AgentHello); err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Agent", Agent{}); err != nil {
		return err
	}
	server.ServeConn(port)
	return nil
}

// InitrdMain is the main function of PID 1 in the initrd: it loads the modules, mounts the disk and becomes its systemd.
func InitrdMain() error {
	for dir, fs := range map[string]string{"/dev": "devtmpfs", "/proc": "proc", "/sys": "sysfs"} {
		if err := unix.Mount(fs, dir, fs, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	modules, err := filepath.Glob("/modules/*.ko")
	if err != nil {
		return err
	}
	slices.Sort(modules)
	for _, m := range modules {
		f, err := os.Open(m)
		if err != nil {
			return err
		}
		if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		f.Close()
	}
	for range 500 { // the disk shows up a little after its driver
		if err = unix.Mount("/dev/vda", "/root", "ext4", unix.MS_NOATIME, ""); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("mount the disk: %w", err)
	}
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		err = errors.Join(err, unix.Mount(dir, "/root"+dir, "", unix.MS_MOVE, ""))
	}
	err = errors.Join(err, os.Chdir("/root"), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/"))
	if err != nil {
		return err
	}
	const systemd = "/lib/systemd/systemd"
	return unix.Exec(systemd, []string{systemd}, nil)
}
