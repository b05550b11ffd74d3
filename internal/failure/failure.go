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
	"unicode"
	"unicode/utf8"
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

const (
	maxUnits = 4       // of more, only the number is in the text
	minKey   = 40      // consecutive letters and digits that may be a key
	hidden   = "[...]" // in place of a secret
)

// Unit is a failed systemd unit, or another cause of the failure.
type Unit struct {
	Name  string
	Lines []string // what it logged, newest first
}

// Text describes the units in at most limit characters, of which each gets an
// equal share of what those before it have left.
func Text(what string, units []Unit, limit int) string {
	rest := ""
	if n := len(units) - maxUnits; n > 0 {
		units, rest = units[:maxUnits], fmt.Sprintf("; and %d more", n)
	}
	text, separator := clean(what), ": "
	for i, u := range units {
		share := (limit - utf8.RuneCountInString(text+rest)) / (len(units) - i)
		text += cut(separator+u.text(share), share)
		separator = "; "
	}
	return cut(text+rest, limit)
}

// text returns the name and as many lines as fit, without those that the text
// contains already.
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

// cut shortens a text to at most limit characters.
func cut(s string, limit int) string {
	const ellipsis = "..."
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:max(limit-len(ellipsis), 0)]) + ellipsis
}

// clean removes control characters and known forms of secrets from a log line, so
// that every user may read it.
func clean(line string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(line, "\ufffd"), func(c rune) bool { return c == ' ' || !unicode.IsPrint(c) })
	for i, word := range words {
		words[i] = cleanWord(word)
		if i > 0 && strings.HasSuffix(strings.Trim(words[i-1], `"'`), "--password") {
			words[i] = hidden
		}
	}
	return strings.Join(words, " ")
}

// cleanWord hides the content of data URLs, the user and the query of other URLs,
// password hashes, crypt(5), and what may be a key.
func cleanWord(w string) string {
	if before, _, ok := strings.Cut(w, "data:"); ok {
		return before + "data:" + hidden
	}
	if scheme, rest, ok := strings.Cut(w, "://"); ok {
		if i := strings.IndexAny(rest, "?#"); i >= 0 {
			end := len(strings.TrimRight(rest, `"':,;`))
			rest = rest[:i+1] + hidden + rest[max(end, i+1):]
		}
		host, _, _ := strings.Cut(rest, "/")
		if i := strings.LastIndex(host, "@"); i >= 0 {
			rest = hidden + rest[i:]
		}
		return scheme + "://" + rest
	}
	if parts := strings.SplitN(w, "$", 3); len(parts) == 3 && parts[1] != "" && len(parts[1]) <= 8 {
		return parts[0] + hidden
	}
	if strings.HasPrefix(strings.TrimLeft(w, `"'`), "/") {
		return w // a path
	}
	for _, run := range strings.FieldsFunc(w, func(c rune) bool { return !inKey(c) }) {
		if len(run) >= minKey {
			return w[:strings.Index(w, run)] + hidden
		}
	}
	return w
}

// inKey reports whether a character occurs in base64 or hex.
func inKey(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("+/=_", c)
}
