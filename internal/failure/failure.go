// Package failure describes why a boot failed: the failed systemd units, and what
// they logged last. It needs systemctl and journalctl, which also work in an initrd
// without a system bus.
package failure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	queryLimit = 10 * time.Second // for each query to systemd and to the journal
	maxLines   = "20"             // read of each unit
)

// Properties of units, org.freedesktop.systemd1(5).
const properties = "Id,Result,ExecMainStatus,StateChangeTimestampMonotonic"

// Matches of journalctl: what a unit's processes logged, what systemd logged about
// the unit, and systemd's entries about a failed job, sd-messages.h.
const (
	fromUnit  = "_SYSTEMD_UNIT="
	aboutUnit = "UNIT="
	jobFailed = "MESSAGE_ID=be02cf6855d2428ba40df7e9d022f03d"
)

// Describe returns what failed in at most limit characters: the jobs that timed
// out and the failed units, in the order of time, each with its last log lines.
// If nothing failed it is the units that are still starting, sinceBoot after the
// start of the boot. What cannot be read is missing.
func Describe(ctx context.Context, limit int, sinceBoot time.Duration) string {
	failed, err := units(ctx, "failed")
	if err != nil {
		return Text("the failed units cannot be read: "+err.Error(), nil, limit)
	}
	what := "failed"
	var all []Unit
	// If a job that waits for a device times out, no unit fails.
	for _, line := range slices.Backward(journal(ctx, "_PID=1", jobFailed, "JOB_RESULT=timeout")) {
		all = append(all, Unit{Name: strings.TrimSuffix(line, ".")})
	}
	for _, name := range failed {
		lines := journal(ctx, fromUnit+name)
		if len(lines) == 0 {
			lines = journal(ctx, aboutUnit+name)
		}
		all = append(all, Unit{name, lines})
	}
	if len(all) == 0 {
		what = fmt.Sprintf("still starting after %d s", int(sinceBoot.Seconds()))
		starting, _ := units(ctx, "activating")
		for _, name := range starting {
			all = append(all, Unit{name, journal(ctx, fromUnit+name)})
		}
	}
	if len(all) == 0 {
		what = "the boot was given up, but no unit failed; the serial console may say why"
	}
	return Text(what, all, limit)
}

// units returns the names of the units in a state, the one that entered it first
// first, without those that systemd stopped for emergency.target.
func units(ctx context.Context, state string) ([]string, error) {
	out, err := run(ctx, "systemctl", "show", "--state="+state, "--property="+properties, "*")
	since := map[string]int{}
	for block := range strings.SplitSeq(out, "\n\n") {
		unit := map[string]string{}
		for line := range strings.Lines(block) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			unit[name] = value
		}
		if unit["Id"] != "" && (unit["Result"] != "signal" || unit["ExecMainStatus"] != "15") { // SIGTERM
			since[unit["Id"]], _ = strconv.Atoi(unit["StateChangeTimestampMonotonic"])
		}
	}
	names := slices.Sorted(maps.Keys(since))
	slices.SortStableFunc(names, func(a, b string) int { return since[a] - since[b] })
	return names, err
}

// journal returns the last lines of this boot that fit all matches, newest first;
// none without journalctl.
func journal(ctx context.Context, match ...string) []string {
	args := append([]string{"--quiet", "--no-pager", "--boot", "--output=cat", "--reverse", "--lines=" + maxLines}, match...)
	out, _ := run(ctx, "journalctl", args...)
	return strings.FieldsFunc(out, func(c rune) bool { return c == '\n' })
}

// run returns what a command prints on standard output.
func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, queryLimit)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", name, errors.Join(ctx.Err(), err), bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), err
}
