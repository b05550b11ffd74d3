package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
)

const (
	flushLimit     = time.Second            // to wait for journald before the process exits
	outputLimit    = 250 * time.Millisecond // to wait for the reader of the output
	defaultTimeout = 5 * time.Minute        // of report-failure
	noTimeout      = 0                      // of check-in: it runs until it has succeeded or is stopped
	maxTimeout     = 24 * time.Hour
)

// gcPercent halves the runtime's minimum heap. A normal run stays below it and never collects garbage; a run that
// receives megabytes instead of a goal state stays within its memory limit.
const gcPercent = 50

// withCheckIn calls f with a check-in and returns its result, for runs that change something. The context ends after
// timeout, unless that is 0, and at SIGTERM or SIGINT.
func withCheckIn(timeout time.Duration, f func(context.Context, *dispatch.CheckIn) (int, error)) (int, error) {
	if os.Geteuid() != 0 { // firewall rules for the WireServer and the records are for root only
		return exitFailed, errors.New("only root can do that: use sudo")
	}
	syscall.Umask(0o022) // every user may read the records
	debug.SetGCPercent(gcPercent)
	// Standard error can be a pipe without a reader, such as nm-dispatcher's after journald was restarted. With SIGPIPE
	// ignored, writes to it fail instead of ending the program (os/signal).
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := untilStopped()
	defer stop()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done after %v", timeout))
		defer cancel()
	}
	j := journal.New(os.Args[0], os.Stderr)
	defer j.Close(flushLimit)
	root := os.DirFS("/")
	return f(ctx, newCheckIn(root, newEnv(ctx, root, j.Log)))
}

// untilStopped returns a context that SIGTERM and SIGINT end.
func untilStopped() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

// timeoutFlag defines --timeout, with a default. It must be more than 0 and at
// most maxTimeout.
func timeoutFlag(flags *flag.FlagSet, timeout time.Duration, usage string) *time.Duration {
	flags.Func("timeout", usage, func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 || d > maxTimeout {
			return fmt.Errorf("want a duration such as 90s or 20m, more than 0 and at most %vh", maxTimeout.Hours())
		}
		timeout = d
		return nil
	})
	return &timeout
}

// onAzure is withCheckIn for commands that do nothing on another platform.
func onAzure(timeout time.Duration, f func(context.Context, *dispatch.CheckIn) (int, error)) (int, error) {
	is, why, err := azure.Detect(os.DirFS("/"))
	if err != nil {
		return exitFailed, err
	}
	if !is {
		fmt.Printf("nothing to do: this machine is not Azure (%s)\n", why)
		return exitDone, nil
	}
	return withCheckIn(timeout, f)
}

// printf writes the final message of a run, for at most outputLimit. If the pipe or journald's socket is full and its reader
// is stopped, the text is lost.
func printf(w io.Writer, format string, args ...any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = fmt.Fprintf(w, format, args...)
	}()
	select {
	case <-done:
	case <-time.After(outputLimit):
	}
}
