// Package failure describes why a boot failed: the failed systemd units, and what
// they logged last. It also works in an initrd without a system bus; it needs
// systemctl and journalctl.
package failure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Of more than maxUnits units there is only the number, and of a unit only
// maxLines lines are read.
const (
	maxUnits = 4
	maxLines = 20
)

// Matches of journalctl: what a unit's processes logged, and systemd's entries
// about a job that failed, sd-messages.h.
const (
	ownLines   = "_SYSTEMD_UNIT="
	unitFailed = "MESSAGE_ID=be02cf6855d2428ba40df7e9d022f03d"
)

// Unit is a systemd unit, or another cause of the failure.
type Unit struct {
	Name  string
	Lines []string // what it logged, newest first
}

// Describe returns what failed in at most limit characters: the jobs that timed
// out and the units that failed, the first one first, each with the last lines
// that it logged. If nothing failed it is the units that still start, sinceBoot
// after the boot began. What cannot be read is missing in it.
func Describe(ctx context.Context, limit int, sinceBoot time.Duration) string {
	found, err := units(ctx)
	if err != nil {
		return Text("the failed units cannot be read: "+err.Error(), nil, limit)
	}
	// No unit fails because a job timed out that waited for a device.
	var all []Unit
	for _, line := range slices.Backward(journal(ctx, "_PID=1", unitFailed, "JOB_RESULT=timeout")) {
		all = append(all, Unit{Name: strings.TrimSuffix(line, ".")})
	}
	for _, name := range found[stateFailed] {
		own := journal(ctx, ownLines+name)
		if len(own) == 0 {
			own = journal(ctx, "UNIT="+name) // what systemd logged about it
		}
		all = append(all, Unit{name, own})
	}
	if len(all) > 0 {
		return Text("failed", all, limit)
	}
	for _, name := range found[stateStarting] {
		all = append(all, Unit{name, journal(ctx, ownLines+name)})
	}
	if len(all) == 0 {
		return Text("the boot was given up, but no unit failed; the serial console may say why", nil, limit)
	}
	return Text(fmt.Sprintf("still starting after %d s", int(sinceBoot.Seconds())), all, limit)
}

// Text describes the units in at most limit characters, of which each gets an
// equal share of what those before it have left.
func Text(what string, units []Unit, limit int) string {
	text, rest := clean(what), ""
	if n := len(units) - maxUnits; n > 0 {
		units, rest = units[:maxUnits], fmt.Sprintf("; and %d more", n)
	}
	separator := ": "
	for i, u := range units {
		share := (limit - utf8.RuneCountInString(text+rest)) / (len(units) - i)
		text += cut(separator+u.text(share), share)
		separator = "; "
	}
	return cut(text+rest, limit)
}

// text is the unit and as many of its lines as fit, less those that say nothing
// new.
func (u Unit) text(limit int) string {
	text, separator := clean(u.Name), ": "
	for _, line := range u.Lines {
		line = clean(line)
		if strings.Contains(text, line) { // the empty line too
			continue
		}
		if separator != ": " && utf8.RuneCountInString(text+separator+line) > limit {
			break
		}
		text, separator = text+separator+line, " / "
	}
	return text
}

// cut cuts a text to at most limit characters.
func cut(s string, limit int) string {
	const ellipsis = "..."
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:max(limit-len(ellipsis), 0)]) + ellipsis
}
