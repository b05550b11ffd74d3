package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
)

// Columns of the output for people.
const (
	nameColumns    = 15
	verdictColumns = 8
	textColumn     = nameColumns + verdictColumns
)

// Print writes a report for a terminal of 80 columns.
func (r Report) Print(w io.Writer, colours bool) error {
	failed, warned := 0, 0
	for _, s := range r.Steps {
		colour := term.Plain
		switch s.Verdict {
		case Fail:
			colour = term.Red
			failed++
		case Warn:
			colour = term.Yellow
			warned++
		case OK:
			colour = term.Green
		case Skipped:
			colour = term.Faint
		}
		if !colours {
			colour = term.Plain
		}
		_, err := fmt.Fprintf(w, "%s%s%s\n", term.Pad(s.Name, nameColumns),
			colour.Paint(term.Pad(string(s.Verdict), verdictColumns)), term.Indent(s.Seen, textColumn))
		if err == nil && s.Remedy != "" {
			err = s.printRemedy(w)
		}
		if err != nil {
			return err
		}
		if s.Name == stepPlatform && s.Verdict == Fail {
			break // nothing else was looked at
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", sum(r, failed, warned))
	return err
}

// printRemedy writes each command whole, on a line of its own, to be copied.
func (s Step) printRemedy(w io.Writer) error {
	const margin = "     "
	text := "  -> " + term.Indent(s.say, len(margin))
	if len(s.run) > 0 {
		text += ":\n" + margin + strings.Join(s.run, " &&\n"+margin)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// sum says the whole in a line.
func sum(r Report, failed, warned int) string {
	switch {
	case r.FirstFailure != nil:
		return fmt.Sprintf("%d failed, the first one is %s: begin there", failed, *r.FirstFailure)
	case warned > 0:
		return fmt.Sprintf("nothing failed; %d to look at", warned)
	}
	return "all is well"
}
