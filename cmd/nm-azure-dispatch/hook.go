package main

import (
	"io/fs"
	"os"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

const (
	// hardStop ends the process one second after the budget, because some
	// dependencies take no context.
	hardStop = dispatch.Budget + time.Second
	// flushLimit bounds the wait for journald before the process exits.
	flushLimit = time.Second
)

// hook handles a relevant event on an Azure VM and returns the exit status.
func hook(root fs.FS, ev nm.Event) int {
	time.AfterFunc(hardStop, func() {
		printf(os.Stderr, "nm-azure-dispatch: %s %s: not done after %v, stopped\n", ev.Interface, ev.Action, hardStop)
		os.Exit(exitFailed)
	})
	ctx, stop := begin()
	defer stop()
	j := journal.New(os.Args[0], os.Stderr)
	defer j.Close(flushLimit)

	env := newEnv(ctx, root, j.Log)
	h := &dispatch.Hook{Env: env, Event: ev, CheckIn: newCheckIn(root, env)}
	if err := h.Run(ctx); err != nil {
		printf(os.Stderr, "nm-azure-dispatch: %s %s: %v\n", ev.Interface, ev.Action, err)
		return exitFailed
	}
	return exitDone
}
