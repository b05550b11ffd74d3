package failure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// askLimit bounds each question to systemd and to the journal.
const askLimit = 10 * time.Second

// states of units that say why a boot does not go on, and what is read of each,
// org.freedesktop.systemd1(5).
const (
	stateFailed   = "failed"
	stateStarting = "activating"
	properties    = "Id,ActiveState,Result,ExecMainStatus,StateChangeTimestampMonotonic"
)

// units returns the names of the units in each state, the one first that came to
// it first, and without those that failed because systemd ended them for
// emergency.target. systemctl finds systemd with a bus and without.
func units(ctx context.Context) (map[string][]string, error) {
	out, err := run(ctx, "systemctl", "show", "--state="+stateFailed, "--state="+stateStarting, "--property="+properties, "*")
	if err != nil {
		return nil, err
	}
	var all []map[string]string
	for block := range strings.SplitSeq(out, "\n\n") {
		u := map[string]string{}
		for line := range strings.Lines(block) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			u[name] = value
		}
		all = append(all, u)
	}
	since := func(u map[string]string) int {
		n, _ := strconv.Atoi(u["StateChangeTimestampMonotonic"])
		return n
	}
	slices.SortStableFunc(all, func(a, b map[string]string) int { return since(a) - since(b) })
	names := map[string][]string{}
	for _, u := range all {
		if u["Result"] != "signal" || u["ExecMainStatus"] != "15" { // SIGTERM
			names[u["ActiveState"]] = append(names[u["ActiveState"]], u["Id"])
		}
	}
	return names, nil
}

// journal returns the newest lines of this boot that match all of match, the
// newest first; none without journalctl.
func journal(ctx context.Context, match ...string) []string {
	options := []string{"--quiet", "--no-pager", "--boot", "--output=cat", "--reverse", "--lines=" + strconv.Itoa(maxLines)}
	out, _ := run(ctx, "journalctl", append(options, match...)...)
	return strings.FieldsFunc(out, func(c rune) bool { return c == '\n' })
}

// run returns what a command prints on standard output.
func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, errors.Join(ctx.Err(), err), strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
