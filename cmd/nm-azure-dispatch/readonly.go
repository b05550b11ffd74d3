package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
)

// snapshot reads this machine, until SIGTERM or SIGINT.
func snapshot(o machine.Options) *machine.Snapshot {
	ctx, stop := untilStopped()
	defer stop()
	o.Root, o.Records, o.Own = os.DirFS("/"), stateDir, ownAddrs()
	o.Connect, o.UserAgent = sysbus.Connect, userAgent()
	return machine.Read(ctx, o)
}

// show writes the result to standard output, and returns the exit status of a command
// that found the machine well, or not.
func show(m *machine.Snapshot, well, asJSON bool, v any, print func(io.Writer, bool) error) (int, error) {
	var err error
	if asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(v)
	} else {
		err = print(os.Stdout, term.Colours(os.Stdout, os.Getenv))
	}
	switch {
	case err != nil:
		return exitFailed, err
	case !m.Platform.Azure && m.Platform.Err == nil:
		return exitNotAzure, nil
	case !well:
		return exitFailed, nil
	}
	return exitDone, nil
}
