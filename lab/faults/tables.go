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
	return os.WriteFile(path, []byte(before+tablesBegin+"\n\n"+Tables(outcomes)+"\n"+tablesEnd+after), 0o644)
}

// Tables are the outcomes in Markdown: the grid, and a list for each group.
func Tables(outcomes []Outcome) string {
	var b strings.Builder
	writeGrid(&b, outcomes)
	group := ""
	for _, o := range outcomes {
		if o.Cell != (Cell{}) {
			continue
		}
		if o.Group != group {
			group = o.Group
			fmt.Fprintf(&b, "\n### %s\n\n| case | Ready after | requests | Readys | MiB | fastest peer | |\n|---|---|---|---|---|---|---|\n", group)
		}
		took := seconds(o.Took)
		if o.Want.Never {
			took = "impossible; given up after " + took
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %.1f | %s | %s |\n", o.Name, took, len(o.Requests), o.Readys, mib(o.PeakKiB), peerText(o.Peer), verdict(o))
	}
	return b.String()
}

// row is the outcomes of a fault in the grid.
type row struct {
	cells    map[Cell]Outcome
	requests int
	peak     int64
	verdict  string
}

func writeGrid(b *strings.Builder, outcomes []Outcome) {
	rows := map[string]*row{}
	var order []string
	for _, o := range outcomes {
		if o.Cell == (Cell{}) {
			continue
		}
		r := rows[o.Cell.Fault]
		if r == nil {
			r = &row{cells: map[Cell]Outcome{}, verdict: "ok"}
			rows[o.Cell.Fault] = r
			order = append(order, o.Cell.Fault)
		}
		r.cells[o.Cell] = o
		r.requests, r.peak = max(r.requests, len(o.Requests)), max(r.peak, o.PeakKiB)
		if v := verdict(o); v != "ok" {
			r.verdict = v
		}
	}
	if len(order) == 0 {
		return
	}
	b.WriteString("### Wrong answers\n\nSeconds to Ready; requests and MiB are the most of a row's.\n\n" +
		"| fault | goal state once | 3 times | for ever | health once | 3 times | for ever | requests | MiB | fastest peer | |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range order {
		r := rows[name]
		fmt.Fprintf(b, "| %s |", name)
		var peers []string
		for _, at := range []string{atGoalState, atHealth} {
			for _, times := range []int{1, 3, -1} {
				o, ok := r.cells[Cell{name, at, times}]
				if !ok {
					b.WriteString(" - |")
					continue
				}
				fmt.Fprintf(b, " %s |", strings.TrimSuffix(seconds(o.Took), " s"))
				if o.Peer != noPeer {
					peers = append(peers, fmt.Sprintf("%s %s: %s", at, timesText(times), peerText(o.Peer)))
				}
			}
		}
		fmt.Fprintf(b, " %d | %.1f | %s | %s |\n", r.requests, mib(r.peak), strings.Join(peers, "; "), r.verdict)
	}
}

func verdict(o Outcome) string {
	if o.Err != nil || len(o.Faults) > 0 {
		return "**RED**"
	}
	return "ok"
}

func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func mib(kib int64) float64 { return float64(kib) / 1024 }

func peerText(p Peer) string {
	switch {
	case p == noPeer:
		return ""
	case p.Took == 0:
		return "at once (" + p.Name + ")"
	}
	return fmt.Sprintf("%.0f s (%s)", p.Took.Seconds(), p.Name)
}
