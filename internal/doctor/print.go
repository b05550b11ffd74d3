package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
)

// Columns of the text output.
const (
	nameColumns    = 15
	verdictColumns = 8
	textColumn     = nameColumns + verdictColumns
)

var verdictColours = map[Verdict]term.Colour{Fail: term.Red, Warn: term.Yellow, OK: term.Green, Skipped: term.Faint}

// Print writes a report for a terminal of 80 columns. Each command has a line of its own,
// never wrapped, to be copied.
func (r Report) Print(w io.Writer, colours bool) error {
	var b strings.Builder
	const margin = "     "
	count := map[Verdict]int{}
	for _, s := range r.Steps {
		count[s.Verdict]++
		verdict := fmt.Sprintf("%-*s", verdictColumns, s.Verdict)
		if colours {
			verdict = verdictColours[s.Verdict].Paint(verdict)
		}
		fmt.Fprintf(&b, "%-*s%s%s\n", nameColumns, s.Name, verdict, term.Indent(s.Seen, textColumn))
		if s.say != "" {
			b.WriteString("  -> " + term.Indent(s.say, len(margin)))
			if len(s.run) > 0 {
				b.WriteString(":\n" + margin + strings.Join(s.run, " &&\n"+margin))
			}
			b.WriteString("\n")
		}
		if s.Name == "platform" && s.Verdict == Fail {
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
