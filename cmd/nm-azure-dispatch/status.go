package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/status"
)

// statusLimit bounds what NetworkManager and resolved are asked.
const statusLimit = 3 * time.Second

// printStatus says how this boot's check-in and the nameservers stand. Any user
// may ask.
func printStatus(args []string) int {
	flags := flag.NewFlagSet("status", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "")
	if ok, status := parse(flags, args); !ok {
		return status
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, statusLimit, fmt.Errorf("no answer within %v", statusLimit))
	defer cancel()
	b := lazyBus(ctx)
	s := status.Read(ctx, status.Env{
		Root: os.DirFS("/"), Records: stateDir, NetworkManager: b.networkManager, Resolved: b.resolved,
	})
	if err := show(*asJSON, s, s.Print); err != nil {
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: status: %v\n", err)
		return exitFailed
	}
	switch {
	case !s.Azure:
		return exitNotAzure
	case !s.Ready():
		return exitFailed
	}
	return exitDone
}
