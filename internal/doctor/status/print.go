package status

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
)

// Columns of the text output: the subject, and the name of the value.
const (
	subjectColumns = 11
	labelColumns   = 10
	textColumn     = subjectColumns + labelColumns
)

// printer collects lines for a terminal of 80 columns.
type printer struct {
	strings.Builder
	colours bool
}

// line adds a line unless its text is empty.
func (p *printer) line(subject, label, text string) {
	if text != "" {
		fmt.Fprintf(p, "%-*s%-*s%s\n", subjectColumns, subject, labelColumns, label, term.Indent(text, textColumn))
	}
}

// state adds the line of the check-in's state.
func (p *printer) state(text string, c term.Colour) {
	if p.colours {
		text = c.Paint(text)
	}
	fmt.Fprintf(p, "%-*s%-*s%s\n", subjectColumns, "check-in", labelColumns, "state", text)
}

// Print writes the status for a terminal of 80 columns.
func (s Status) Print(w io.Writer, colours bool) error {
	p := &printer{colours: colours}
	switch {
	case !s.Azure && len(s.NotRead) > 0:
		p.line("check-in", "state", "unknown: cannot tell whether this machine is Azure")
		p.line("", "because", s.NotRead[0].Why)
	case !s.Azure:
		p.line("check-in", "state", "nothing to do: this machine is not Azure")
		p.line("", "because", s.Platform)
	default:
		p.checkIn(s)
		for _, l := range s.Links {
			p.WriteString("\n")
			p.link(l)
		}
		for i, n := range s.NotRead {
			if i == 0 {
				p.WriteString("\n")
			}
			p.line("not read", "", n.What+": "+n.Why)
		}
	}
	_, err := io.WriteString(w, p.String())
	return err
}

func (p *printer) checkIn(s Status) {
	c := s.CheckIn
	switch {
	case s.recordErr != nil:
		p.state("unknown", term.Yellow)
		return
	case c == nil:
		p.state("not ready", term.Red)
		p.line("", "why", "there was no check-in attempt in this boot")
	case c.State == boot.Ready:
		p.state("ready", term.Green)
	case c.State == boot.Failed:
		p.state("failure reported", term.Red)
	case s.Running:
		p.state("not ready, retrying", term.Yellow)
	case s.unitsErr != nil:
		p.state("not ready", term.Red)
	default:
		p.state("not ready, "+machine.UnitCheckIn+" is not running", term.Red)
	}
	if c != nil {
		p.record(c)
	}
	if c == nil || c.State != boot.Ready {
		p.line("", "next", "sudo nm-azure-dispatch doctor")
	}
}

func (p *printer) record(c *boot.CheckIn) {
	when := "at"
	if c.State == boot.Trying {
		when = "last try"
		p.line("", "since", c.StartedAt.UTC().Format(time.RFC3339))
	}
	after := time.Duration(c.AfterBootMS) * time.Millisecond
	p.line("", when, fmt.Sprintf("%v after boot, %s", after, c.UpdatedAt.UTC().Format(time.RFC3339)))
	source := map[boot.Source]string{
		boot.FromOption245: "option 245", boot.FromOperator: "named by the operator", boot.FromConstant: "the default address",
	}[c.Source]
	server := fmt.Sprintf("%s (%s)", c.WireServer, cmp.Or(source, string(c.Source)))
	if c.Interface != "" {
		server += ", lease of " + c.Interface
	}
	p.line("", "server", server)
	p.line("", "via", c.Via)
	p.line("", "attempts", strconv.Itoa(c.Attempts))
	p.line("", "error", c.LastError)
}

func (p *printer) link(l Link) {
	lease := "no DHCPv4 lease"
	if l.Lease != nil {
		lease = text(l.Lease, nil, nil)
	} else if l.DNS == nil && l.Networkd == nil { // no manager knows the link or has answered
		lease = "unknown"
	}
	p.line(l.Interface, "lease", lease)
	if w := l.DNS; w != nil {
		p.line("", "wanted", text(w.Nameservers, w.Other, w.Domains))
	}
	if l.Networkd != nil {
		p.line("", "networkd", text(l.Networkd, nil, nil))
	}
	if r := l.Resolved; r != nil {
		p.line("", "resolved", text(r.Nameservers, nil, r.Domains))
	}
	p.line("", "from", map[string]string{
		fromUs: fromUs, fromNetworkManager: "NetworkManager", fromNetworkd: fromNetworkd, fromOther: "something else",
	}[l.From])
	if l.State == boot.Left {
		p.line("", "left", l.Reason)
	}
}

// text joins nameservers and search domains.
func text(servers []netip.Addr, other, domains []string) string {
	var words []string
	for _, a := range servers {
		words = append(words, a.String())
	}
	all := cmp.Or(strings.Join(append(words, other...), " "), "no nameservers")
	if len(domains) > 0 {
		all += ", domains " + strings.Join(domains, " ")
	}
	return all
}
