package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// gcPercent halves the runtime's least heap: an ordinary run stays below it and collects nothing, and one that is sent
// megabytes in place of a goal state keeps to the memory that it is allowed.
const gcPercent = 50

// sayLimit is how long a run waits for the one who reads its output.
const sayLimit = 250 * time.Millisecond

// say prints what there is to say at the end of a run. The pipe, or journald's socket, can be full and its reader stopped:
// then the text is lost, and the run ends all the same.
func say(w io.Writer, format string, args ...any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = fmt.Fprintf(w, format, args...)
	}()
	select {
	case <-done:
	case <-time.After(sayLimit):
	}
}

// begin returns the context of a run, which SIGTERM and SIGINT end. Standard error can be a pipe whose reader is gone,
// such as nm-dispatcher's when journald was started anew: a write to it fails from now on, and no longer ends the
// program, SIGPIPE in os/signal.
func begin() (context.Context, context.CancelFunc) {
	debug.SetGCPercent(gcPercent)
	signal.Ignore(syscall.SIGPIPE)
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}
