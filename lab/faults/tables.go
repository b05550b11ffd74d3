package faults

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// The markers in the document between which the tables are.
const (
	tablesBegin = "<!-- faults: begin -->"
	tablesEnd   = "<!-- faults: end -->"
)

// WriteTables puts the tables into a document, in the place of those that are there.
func WriteTables(path string, outcomes []Outcome) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	before, rest, ok := strings.Cut(string(b), tablesBegin)
	_, after, ok2 := strings.Cut(rest, tablesEnd)
	if !ok || !ok2 {
		return fmt.Errorf("faults: %s has no place for the tables, between %s and %s", path, tablesBegin, tablesEnd)
	}
	return os.WriteFile(path, []byte(before+tablesBegin+"\n"+tables(outcomes)+"\n"+tablesEnd+after), 0o644)
}

// tables are the outcomes in Markdown, a table for each group.
func tables(outcomes []Outcome) string {
	var b strings.Builder
	group := ""
	for _, o := range outcomes {
		if o.Group != group {
			group = o.Group
			fmt.Fprintf(&b, "\n### %s\n\n| case | Ready after | requests | Readys | MiB | fastest peer | |\n|---|---|---|---|---|---|---|\n", group)
		}
		took, verdict := seconds(o.Took), "ok"
		if o.Want.Never {
			took = "impossible; given up after " + took
		}
		if len(o.Faults) > 0 {
			verdict = "**RED**"
		}
		mib := float64(o.PeakKiB) / 1024
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %.1f | %s | %s |\n", o.Name, took, len(o.Requests), o.Readys, mib, peerText(o.Peer), verdict)
	}
	return b.String()
}

func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func peerText(p Peer) string {
	switch {
	case p == noPeer:
		return ""
	case p.Took == 0:
		return "at once (" + p.Name + ")"
	}
	return fmt.Sprintf("%.0f s (%s)", p.Took.Seconds(), p.Name)
}
