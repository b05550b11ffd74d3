// Package failure says why a boot failed: which units of systemd, and what they
// logged last.
//
// It is for an initrd too, where there may be no system bus, nor any of the
// usual tools but journalctl.
package failure

import (
	"context"
	"fmt"
	"time"
)

const (
	// maxUnits is how many units are described; of the others there is the number.
	maxUnits = 4
	// maxLines is how many of a unit's lines are looked at.
	maxLines = 20
)

// Unit is a unit of systemd that failed, or that still starts.
type Unit struct {
	Name  string
	Lines []string // what it logged, newest first
}

// Describe returns the units that failed, the first one first, with the last
// lines that each logged, in at most limit characters. If none failed it is
// those that still start, sinceBoot after the boot began. It always returns a
// text; what cannot be read is missing in it.
func Describe(ctx context.Context, limit int, sinceBoot time.Duration) string {
	failed, err := units(ctx, "failed")
	if err != nil {
		return Text("the failed units cannot be read: "+err.Error(), nil, limit)
	}
	if len(failed) > 0 {
		return Text("failed", withLines(ctx, failed), limit)
	}
	starting, err := units(ctx, "activating")
	if err != nil || len(starting) == 0 {
		return Text("the boot was given up, but no unit failed; the serial console may say why", nil, limit)
	}
	return Text(fmt.Sprintf("still starting after %d s", int(sinceBoot.Seconds())), withLines(ctx, starting), limit)
}

func withLines(ctx context.Context, names []string) []Unit {
	var out []Unit
	for i, name := range names {
		u := Unit{Name: name}
		if i < maxUnits {
			u.Lines = lines(ctx, name)
		}
		out = append(out, u)
	}
	return out
}
