package main

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// hardStop ends the process one second after the budget, because some
// dependencies take no context.
const hardStop = dispatch.Budget + time.Second

// hook handles a relevant event on an Azure VM. If the platform is unknown it only
// logs, once per boot, why it does nothing.
func hook(root fs.FS, ev nm.Event, platformErr error) (int, error) {
	time.AfterFunc(hardStop, func() {
		printf(os.Stderr, "nm-azure-dispatch: %s %s: not done after %v, stopped\n", ev.Interface, ev.Action, hardStop)
		os.Exit(exitFailed)
	})
	return withCheckIn(root, noTimeout, func(ctx context.Context, c *dispatch.CheckIn) (int, error) {
		if platformErr != nil {
			if c.Store.First("platform-unknown") {
				c.Log(journal.PlatformUnknown, slog.Any("error", platformErr))
			}
			return exitDone, nil
		}
		c.Event = ev
		if err := (dispatch.Hook{CheckIn: c}).Run(ctx); err != nil {
			return exitFailed, err
		}
		return exitDone, nil
	})
}
