// nm-azure-dispatch reports to Azure that this VM is ready, and configures the
// nameservers of the DHCP lease in systemd-resolved.
//
// NetworkManager's dispatcher runs it, through a gate script of a few lines, for
// every event of every device, on every platform. So main returns before it opens
// anything unless the event is relevant and the machine is an Azure VM. The other
// commands are in command.go.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// Exit statuses, which never change.
const (
	exitDone     = 0 // success, nothing to do, or handed over
	exitFailed   = 1 // nm-dispatcher logs it
	exitUsage    = 2
	exitNotAzure = 3 // of status and doctor
)

// envAction is the environment variable of a dispatcher script that has the
// action too, NetworkManager-dispatcher(8).
const envAction = "NM_DISPATCHER_ACTION"

// hardStop ends the process one second after the budget, because some
// dependencies take no context.
const hardStop = dispatch.Budget + time.Second

func main() {
	args := os.Args[1:]
	switch {
	case len(args) == 3 && args[0] == "hook":
		os.Exit(event(args[1], args[2]))
	case len(args) == 2 && args[1] != "" && args[1] == os.Getenv(envAction):
		os.Exit(event(args[0], args[1]))
	}
	os.Exit(command(args))
}

// event handles a dispatcher event and returns the exit status.
func event(iface, action string) int {
	ev, err := nm.ParseEvent(iface, action, os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	root := os.DirFS("/")
	if !ev.Concerns() || ev.Action != nm.Down && link.IsPort(root, ev.Interface) {
		return exitDone // a device that becomes a port goes down first, and its nameservers are removed then
	}
	is, _, err := azure.Detect(root)
	if err == nil && !is {
		return exitDone
	}
	status, err := hook(ev, err)
	if err != nil {
		printf(os.Stderr, "nm-azure-dispatch: %s %s: %v\n", ev.Interface, ev.Action, err)
	}
	return status
}

// hook handles a relevant event on an Azure VM. If the platform is unknown it only
// logs why it does nothing.
func hook(ev nm.Event, platformErr error) (int, error) {
	time.AfterFunc(hardStop, func() {
		printf(os.Stderr, "nm-azure-dispatch: %s %s: not done after %v, stopped\n", ev.Interface, ev.Action, hardStop)
		os.Exit(exitFailed)
	})
	return withCheckIn(noTimeout, func(ctx context.Context, c *dispatch.CheckIn) (int, error) {
		if platformErr != nil {
			c.Log(journal.PlatformUnknown, slog.Any("error", platformErr))
			return exitDone, nil
		}
		c.Event = ev
		if err := (dispatch.Hook{CheckIn: c}).Run(ctx); err != nil {
			return exitFailed, err
		}
		return exitDone, nil
	})
}
