package status

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
)

// Columns of the output for people: what it is about, and of what it tells.
const (
	subjectColumns = 11
	labelColumns   = 10
	textColumn     = subjectColumns + labelColumns
)

// printer writes until there is an error.
type printer struct {
	w       io.Writer
	colours bool
	err     error
}

func (p *printer) line(subject, label, text string) {
	if p.err == nil && text != "" {
		_, p.err = fmt.Fprintf(p.w, "%s%s%s\n", term.Pad(subject, subjectColumns), term.Pad(label, labelColumns), term.Indent(text, textColumn))
	}
}

// state is a line whose text is one coloured word.
func (p *printer) state(subject, label, word string, c term.Colour) {
	if !p.colours {
		c = term.Plain
	}
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, "%s%s%s\n", term.Pad(subject, subjectColumns), term.Pad(label, labelColumns), c.Paint(word))
	}
}

// Print writes the status for a terminal of 80 columns.
func (s Status) Print(w io.Writer, colours bool) error {
	p := &printer{w: w, colours: colours}
	if !s.Azure && len(s.NotRead) > 0 {
		p.line("check-in", "state", "unknown: cannot tell whether this machine is Azure")
		p.line("", "because", s.NotRead[0].Why)
		return p.err
	}
	if !s.Azure {
		p.line("check-in", "state", "nothing to do: this machine is not Azure")
		p.line("", "because", s.Platform)
		return p.err
	}
	s.printCheckIn(p)
	for _, l := range s.Links {
		p.blank()
		l.print(p)
	}
	for i, n := range s.NotRead {
		if i == 0 {
			p.blank()
		}
		p.line("not read", "", n.What+": "+n.Why)
	}
	return p.err
}

func (p *printer) blank() {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w)
	}
}

func (s Status) printCheckIn(p *printer) {
	if s.recordErr != nil {
		p.state("check-in", "state", "unknown", term.Yellow)
		return
	}
	if s.CheckIn == nil {
		p.state("check-in", "state", "not ready", term.Red)
		p.line("", "why", "in this boot nothing has checked in, nor tried to")
		p.line("", "next", "sudo nm-azure-dispatch doctor")
		return
	}
	c := s.CheckIn
	when := fmt.Sprintf("%v after boot, %s", time.Duration(c.AfterBootMS)*time.Millisecond, c.UpdatedAt.UTC().Format(time.RFC3339))
	server := fmt.Sprintf("%s (%s)", c.WireServer, sourceText(c.Source))
	if c.Interface != "" {
		server = fmt.Sprintf("%s (%s), lease of %s", c.WireServer, sourceText(c.Source), c.Interface)
	}
	switch c.State {
	case boot.Ready:
		p.state("check-in", "state", "ready", term.Green)
		p.line("", "at", when)
	case boot.Failed:
		p.state("check-in", "state", "failure reported", term.Red)
		p.line("", "at", when)
	case boot.Trying:
		if s.Running {
			p.state("check-in", "state", "not ready, retrying", term.Yellow)
		} else {
			p.state("check-in", "state", "not ready, nobody is retrying", term.Red)
		}
		p.line("", "since", c.StartedAt.UTC().Format(time.RFC3339))
		p.line("", "last try", when)
	}
	p.line("", "server", server)
	p.line("", "via", c.Via)
	p.line("", "after", doctor.Attempts(c.Attempts))
	p.line("", "error", c.LastError)
	if c.State != boot.Ready {
		p.line("", "next", "sudo nm-azure-dispatch doctor")
	}
}

func sourceText(s boot.Source) string {
	switch s {
	case boot.FromOption245:
		return "option 245"
	case boot.FromOperator:
		return "named by the operator"
	case boot.FromConstant:
		return "the default address"
	}
	return string(s)
}

func (l Link) print(p *printer) {
	lease := "no DHCPv4 lease"
	switch {
	case l.Lease != nil:
		lease = cmp.Or(join(l.Lease), "no nameservers")
	case l.Wish == nil && l.Networkd == nil: // neither manager knows the link, or could be asked
		lease = "unknown"
	}
	p.line(l.Interface, "lease", lease)
	if w := l.Wish; w != nil {
		p.line("", "wanted", with(cmp.Or(strings.TrimSpace(join(w.Nameservers)+" "+strings.Join(w.Other, " ")), "no nameservers"), w.Domains))
	}
	if l.Networkd != nil {
		p.line("", "networkd", cmp.Or(join(l.Networkd), "no nameservers"))
	}
	if r := l.Resolved; r != nil {
		p.line("", "resolved", with(cmp.Or(join(r.Nameservers), "no nameservers"), r.Domains))
	}
	p.line("", "from", map[string]string{
		fromUs: fromUs, fromNetworkManager: "NetworkManager", fromNetworkd: fromNetworkd, fromOther: "something else",
	}[l.From])
	if l.State == boot.Left {
		p.line("", "left", l.Reason)
	}
}

func with(servers string, domains []string) string {
	if len(domains) == 0 {
		return servers
	}
	return servers + ", domains " + strings.Join(domains, " ")
}

func join(servers []netip.Addr) string {
	s := make([]string, len(servers))
	for i, a := range servers {
		s[i] = a.String()
	}
	return strings.Join(s, " ")
}
