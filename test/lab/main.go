package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab/internal/inside"
)

// What this executable is when it is started under one of these names instead of its own.
const (
	roleMachine = "nm-azure-lab" // PID 1 of a machine
	// In a virtual machine: PID 1 of the initrd, until it becomes systemd, and what runs the test's commands.
	roleInitrd = "init"
	roleAgent  = "nm-azure-lab-agent"
)

// Main returns at once unless this process was started by the package to be a part of a lab. Call it first thing in
// main or TestMain of every program that makes one. It sets the umask: daemons of other users read the guest's files.
func Main() {
	unix.Umask(0o022)
	var err error
	switch filepath.Base(os.Args[0]) {
	case roleMachine:
		err = inside.Main(os.Args[1])
	case roleInitrd:
		err = inside.InitrdMain()
	case roleAgent:
		err = inside.AgentMain()
	default:
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
	os.Exit(0)
}
