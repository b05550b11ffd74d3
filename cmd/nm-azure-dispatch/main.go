// nm-azure-dispatch tells Azure that this VM is ready, and sees to it that
// systemd-resolved has the nameservers of the DHCP lease.
//
// NetworkManager's dispatcher runs it, through a gate of a few lines of shell,
// for every event of every device, on every platform. So main leaves before
// anything is opened unless the event matters and the machine is Azure. The
// commands for people and units are in one small file each.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"syscall"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// Exit statuses are an interface.
const (
	exitDone   = 0 // done, nothing to do, or handed over
	exitFailed = 1 // nm-dispatcher logs it
	exitUsage  = 2
)

// stateDir holds the records.
const stateDir = "/run/nm-azure-dispatch"

// envAction repeats the action in a dispatcher script's environment,
// NetworkManager-dispatcher(8).
const envAction = "NM_DISPATCHER_ACTION"

func main() {
	args := os.Args[1:]
	if len(args) == 3 && args[0] == "hook" {
		os.Exit(event(args[1:]))
	}
	if len(args) == 2 && args[1] != "" && args[1] == os.Getenv(envAction) {
		os.Exit(event(args))
	}
	os.Exit(command(args))
}

// platformUnknown logs, once a boot, that the hook does nothing and why.
func platformUnknown(err error) int {
	if (boot.Store{Dir: stateDir}).First("platform-unknown") {
		j := journal.New(os.Args[0], os.Stderr)
		defer j.Close(flushLimit)
		j.Log(journal.PlatformUnknown, slog.Any("error", err))
	}
	return exitDone
}

// event handles a call by nm-dispatcher.
func event(args []string) int {
	ev, err := nm.ParseEvent(args, os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	root := os.DirFS("/")
	if !ev.Concerns() || ev.Action != nm.Down && link.Slave(root, ev.Interface) {
		return exitDone // a device that has become a slave goes down before: what it had is taken back
	}
	is, _, err := azure.Detect(root)
	if err == nil && !is {
		return exitDone
	}
	if !asRoot("hook") {
		return exitFailed
	}
	syscall.Umask(0o022) // the records are for all to read
	if err != nil {
		return platformUnknown(err)
	}
	return hook(root, ev)
}
