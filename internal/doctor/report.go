package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
)

// Report is the JSON output: docs/schema/doctor.json.
type Report struct {
	Version      int     `json:"version"`
	Steps        []Step  `json:"steps"`
	FirstFailure *string `json:"first_failure"` // the name of a step; nil if none failed
}

// version counts changes of the JSON output that break its readers.
const version = 1

// NewReport returns the report of the steps.
func NewReport(steps []Step) Report {
	r := Report{Version: version, Steps: steps}
	if i := slices.IndexFunc(steps, func(s Step) bool { return s.Verdict == Fail }); i >= 0 {
		r.FirstFailure = &steps[i].Name
	}
	return r
}

// Columns of the text output.
const (
	nameColumns    = 15
	verdictColumns = 8
	textColumn     = nameColumns + verdictColumns
)

var verdictColours = map[Verdict]term.Colour{Fail: term.Red, Warn: term.Yellow, OK: term.Green, Skipped: term.Faint}

// Print writes a report for a terminal of 80 columns.
func (r Report) Print(w io.Writer, colours bool) error {
	var b strings.Builder
	count := map[Verdict]int{}
	for _, s := range r.Steps {
		count[s.Verdict]++
		verdict := fmt.Sprintf("%-*s", verdictColumns, s.Verdict)
		if colours {
			verdict = verdictColours[s.Verdict].Paint(verdict)
		}
		fmt.Fprintf(&b, "%-*s%s%s\n", nameColumns, s.Name, verdict, term.Indent(s.Seen, textColumn))
		if s.Remedy != "" {
			b.WriteString(s.remedy())
		}
		if s.Name == stepPlatform && s.Verdict == Fail {
			break // nothing else was checked
		}
	}
	sum := "all is well"
	switch {
	case r.FirstFailure != nil:
		sum = fmt.Sprintf("%d failed, the first one is %s: start there", count[Fail], *r.FirstFailure)
	case count[Warn] > 0:
		sum = fmt.Sprintf("nothing failed; %d to look at", count[Warn])
	}
	_, err := io.WriteString(w, b.String()+"\n"+sum+"\n")
	return err
}

// remedy prints each command on a line of its own, never wrapped, to be copied.
func (s Step) remedy() string {
	const margin = "     "
	text := "  -> " + term.Indent(s.say, len(margin))
	if len(s.run) > 0 {
		text += ":\n" + margin + strings.Join(s.run, " &&\n"+margin)
	}
	return text + "\n"
}
