package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// nameservers checks the answers of the nameservers to direct queries.
func nameservers(s *machine.Snapshot) Step {
	replies := s.Probes.Servers.V
	var said []string
	good, silent := 0, 0
	for _, r := range replies {
		said = append(said, describe(r))
		switch {
		case fine(r):
			good++
		case r.Err != nil:
			silent++
		}
	}
	seen := strings.Join(said, "; ")
	switch {
	case len(replies) == 0:
		return skip("no-nameservers", "there are none to ask")
	case good == len(replies):
		return ok(seen)
	case good > 0:
		return warn("nameserver-fails", seen, "fix those that do not answer, or remove them from the virtual network's DNS servers")
	case silent > 0:
		return fail("nameservers-silent", seen, "check that they run, if they are your own, and that nothing blocks UDP and TCP port 53", ruleset)
	}
	return fail("nameservers-refuse", seen, "have them answer this machine (recursion allowed, forwarders reachable), or set others in the virtual network")
}

// describe returns the answer of a nameserver as text.
func describe(r machine.Reply) string {
	if r.Err != nil {
		return fmt.Sprintf("%s: no answer", r.Server)
	}
	text := fmt.Sprintf("%s: %s in %s", r.Server, rcode(r.Rcode), r.RTT.Round(100*time.Microsecond))
	if r.Truncated {
		text += ", cut over UDP, whole over TCP"
	}
	if !r.EDNS {
		text += ", no EDNS"
	}
	return text
}

// fine reports whether libc accepts the answer; otherwise it queries the next server.
func fine(r machine.Reply) bool {
	return r.Err == nil && (r.Rcode == dns.RcodeSuccess || r.Rcode == dns.RcodeNameError)
}

func rcode(code int) string {
	if s, ok := dns.RcodeToString[code]; ok {
		return s
	}
	return fmt.Sprintf("rcode %d", code)
}

// lookup checks whether programs can resolve a name, with the first available
// service of nsswitch.conf, like libc.
func lookup(s *machine.Snapshot) Step {
	name := s.Probes.Name
	for _, service := range s.Conf.Hosts {
		switch {
		case service == "resolve" && s.Resolved.Err == nil:
			return lookupResolved(s, name)
		case service == "dns":
			return lookupFile(s, name)
		}
	}
	return fail("lookup-no-service", "no program asks a nameserver: the line hosts: of /etc/nsswitch.conf has no dns, nor resolve with its module", "write it as in", "sudo sed -i 's/^hosts:.*/hosts: files dns/' /etc/nsswitch.conf")
}

func lookupResolved(s *machine.Snapshot, name string) Step {
	if err := s.Probes.LookUp.Err; err != nil {
		return failedLookup(s, fmt.Sprintf("%s: %s", name, err))
	}
	if r, bad := publicNames(s); bad {
		return r
	}
	f := s.Probes.LookUp.V
	switch {
	case f.Error == "":
		return ok(fmt.Sprintf("%s: %s", name, list(f.Addrs)))
	case s.Probes.Asked:
		return warn("lookup-no-address", fmt.Sprintf("%s: a nameserver answers that it has no address (%s)", name, f.Error), "check that the right nameservers are asked", "resolvectl query "+shell(name))
	}
	return ok(fmt.Sprintf("%s: a nameserver answers that it has no address", name))
}

// lookupFile checks lookups with /etc/resolv.conf, whose servers are queried one
// after the other.
func lookupFile(s *machine.Snapshot, name string) Step {
	replies := s.Probes.File.V
	i := slices.IndexFunc(replies, fine)
	stub := slices.ContainsFunc(replies, func(r machine.Reply) bool { return machine.IsStub(r.Server) })
	switch {
	case i < 0 && s.Resolved.Err != nil && s.Conf.ResolvConf.Resolved():
		return skip("not-checked", "not checked: resolved failed")
	case i < 0 && stub && s.Probes.LookUp.Err == nil:
		return fail("lookup-stub", name+": systemd-resolved resolves it, but does not answer programs at the address in /etc/resolv.conf", "check DNSStubListener= in /etc/systemd/resolved.conf, and for a rule that blocks port 53 of 127.0.0.53", ruleset)
	case i < 0 && stub:
		return failedLookup(s, fmt.Sprintf("%s: %s", name, s.Probes.LookUp.Err))
	case i < 0:
		return fail("lookup-failed", fmt.Sprintf("%s: none of the nameservers in /etc/resolv.conf answers", name), "name others there, or link it to systemd-resolved if that runs", "cat /etc/resolv.conf")
	}
	if r, bad := publicNames(s); bad && stub {
		return r
	}
	if i > 0 && replies[0].Err != nil {
		return warn("lookup-slow", fmt.Sprintf("%s: programs wait for %s first, which does not answer", name, replies[0].Server), "remove it from /etc/resolv.conf", "cat /etc/resolv.conf")
	}
	if replies[i].Rcode != dns.RcodeSuccess && s.Probes.Asked {
		return warn("lookup-no-address", fmt.Sprintf("%s: %s answers that there is no such name", name, replies[i].Server), "check that the right nameservers are asked", "cat /etc/resolv.conf")
	}
	return ok(fmt.Sprintf("%s: answered by %s", name, replies[i].Server))
}

// failedLookup finds the setting because of which systemd-resolved does not accept
// nameservers that answer.
func failedLookup(s *machine.Snapshot, seen string) Step {
	mode := s.Resolved.V.Links[s.Index(s.Interface)]
	const conf = " in /etc/systemd/resolved.conf, then restart it"
	restart := "sudo systemctl restart " + machine.UnitResolved
	switch answered := slices.ContainsFunc(s.Probes.Servers.V, fine); {
	case answered && mode.DNSOverTLS == "yes":
		return fail("lookup-dns-over-tls", seen+"; DNSOverTLS=yes, which the nameservers do not support", "set DNSOverTLS=no for the link, or"+conf, "sudo sed -i 's/^DNSOverTLS=.*/DNSOverTLS=no/' /etc/systemd/resolved.conf", restart)
	case answered && mode.DNSSEC == "yes":
		return fail("lookup-dnssec", seen+"; DNSSEC=yes, which the nameservers do not support", "set DNSSEC=no for the link, or"+conf, "sudo sed -i 's/^DNSSEC=.*/DNSSEC=no/' /etc/systemd/resolved.conf", restart)
	case answered:
		return fail("lookup-failed", seen, "the nameservers answer when asked directly: ask systemd-resolved why it does not", "resolvectl query "+shell(s.Probes.Name))
	}
	return fail("lookup-failed", seen, "fix the nameservers before this, then ask again", "resolvectl query "+shell(s.Probes.Name))
}

// publicNames checks lookups that systemd-resolved sends to another link.
func publicNames(s *machine.Snapshot) (Step, bool) {
	iface := s.AllNames()
	if iface == "" || s.Probes.Public.Err == nil {
		return Step{}, false
	}
	servers := s.Resolved.V.Links[s.Index(iface)].Addrs()
	return fail("lookup-other-link", fmt.Sprintf("all names but those of %s's domains are asked of %s (domain ~.), whose nameservers %s do not answer: %v", s.Interface, iface, list(servers), s.Probes.Public.Err),
		"fix that link, or take the domain from it", "sudo resolvectl domain "+shell(iface)+" ''"), true
}
