package boottest

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Names under which the executable is something else than the test.
const (
	roleWire   = "boottest-wire"  // the WireServer
	roleAgent  = "boottest-agent" // runs the test's commands in the guest
	roleInit   = "boottest-init"  // PID 1 of a container, until it becomes systemd
	roleInitrd = "init"           // PID 1 of QEMU's initrd, until it becomes systemd
)

// Main returns at once unless the executable was started under one of its other names. TestMain calls it first.
// It sets the umask: daemons of other users read the guest's files.
func Main() {
	unix.Umask(0o022)
	var err error
	switch filepath.Base(os.Args[0]) {
	case roleWire:
		err = serveWire()
	case roleAgent:
		err = serveAgent()
	case roleInit:
		err = containerInit()
	case roleInitrd:
		err = initrdInit()
	default:
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
	os.Exit(0)
}
