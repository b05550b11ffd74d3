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

// gcPercent halves the runtime's minimum heap. A normal run stays below it and never collects garbage; a run that
// receives megabytes instead of a goal state stays within its memory limit.
const gcPercent = 50

// outputLimit bounds the wait for the reader of the output.
const outputLimit = 250 * time.Millisecond

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

// begin prepares a run that changes something, and returns its context, which SIGTERM and SIGINT end. Standard error can be
// a pipe without a reader, such as nm-dispatcher's after journald was restarted. With SIGPIPE ignored, writes to it fail
// instead of ending the program (os/signal).
func begin() (context.Context, context.CancelFunc) {
	debug.SetGCPercent(gcPercent)
	signal.Ignore(syscall.SIGPIPE)
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}
