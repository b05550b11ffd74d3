package doctor

import (
	"cmp"
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
	var texts []string
	good, silent := 0, 0
	for _, r := range replies {
		text := fmt.Sprintf("%s: no answer", r.Server)
		if r.Err == nil {
			code := cmp.Or(dns.RcodeToString[r.Rcode], fmt.Sprintf("rcode %d", r.Rcode))
			text = fmt.Sprintf("%s: %s in %s", r.Server, code, r.RTT.Round(100*time.Microsecond))
		}
		texts = append(texts, text)
		if fine(r) {
			good++
		} else if r.Err != nil {
			silent++
		}
	}
	seen := strings.Join(texts, "; ")
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
	return fail("nameservers-refuse", seen,
		"have them answer this machine (recursion allowed, forwarders reachable), or set others in the virtual network")
}

// fine reports whether libc accepts the answer; otherwise it queries the next server.
func fine(r machine.Reply) bool {
	return r.Err == nil && (r.Rcode == dns.RcodeSuccess || r.Rcode == dns.RcodeNameError)
}

// lookup checks whether programs can resolve a name, with the first available
// service of nsswitch.conf, like libc.
func lookup(s *machine.Snapshot) Step {
	for _, service := range s.Conf.Hosts {
		switch {
		case service == "resolve" && s.Resolved.Err == nil:
			return lookupResolved(s)
		case service == "dns":
			return lookupFile(s)
		}
	}
	return fail("lookup-no-service",
		"no program asks a nameserver: the line hosts: of /etc/nsswitch.conf has no dns, nor resolve with its module",
		"write it as in", "sudo sed -i 's/^hosts:.*/hosts: files dns/' /etc/nsswitch.conf")
}

func lookupResolved(s *machine.Snapshot) Step {
	name, found := s.Probes.Name, s.Probes.LookUp
	const none = "%s: a nameserver answers that it has no address"
	switch other := otherLink(s); {
	case found.Err != nil:
		return failedLookup(s)
	case other.Verdict != "":
		return other
	case found.V.Error == "":
		return ok(fmt.Sprintf("%s: %s", name, list(found.V.Addrs)))
	case s.Probes.Asked:
		return warn("lookup-no-address", fmt.Sprintf(none+" (%s)", name, found.V.Error),
			"check that the right nameservers are asked", "resolvectl query "+shell(name))
	}
	return ok(fmt.Sprintf(none, name))
}

// lookupFile checks lookups with /etc/resolv.conf, whose servers are queried one
// after the other.
func lookupFile(s *machine.Snapshot) Step {
	const show = "cat /etc/resolv.conf"
	name, replies := s.Probes.Name, s.Probes.File.V
	i := slices.IndexFunc(replies, fine)
	stub := slices.ContainsFunc(replies, func(r machine.Reply) bool { return machine.IsStub(r.Server) })
	switch other := otherLink(s); {
	case i < 0 && s.Resolved.Err != nil && s.Conf.ResolvConf.Resolved():
		return skip("not-checked", "not checked: resolved failed")
	case i < 0 && stub && s.Probes.LookUp.Err == nil:
		return fail("lookup-stub", name+": systemd-resolved resolves it, but does not answer programs at the address in /etc/resolv.conf",
			"check DNSStubListener= in /etc/systemd/resolved.conf, and for a rule that blocks port 53 of 127.0.0.53", ruleset)
	case i < 0 && stub:
		return failedLookup(s)
	case i < 0:
		return fail("lookup-failed", name+": none of the nameservers in /etc/resolv.conf answers",
			"name others there, or link it to systemd-resolved if that runs", show)
	case stub && other.Verdict != "":
		return other
	case replies[0].Err != nil:
		return warn("lookup-slow", fmt.Sprintf("%s: programs wait for %s first, which does not answer", name, replies[0].Server),
			"remove it from /etc/resolv.conf", show)
	case replies[i].Rcode != dns.RcodeSuccess && s.Probes.Asked:
		return warn("lookup-no-address", fmt.Sprintf("%s: %s answers that there is no such name", name, replies[i].Server),
			"check that the right nameservers are asked", show)
	}
	return ok(fmt.Sprintf("%s: answered by %s", name, replies[i].Server))
}

// failedLookup finds the setting because of which systemd-resolved does not accept
// nameservers that answer.
func failedLookup(s *machine.Snapshot) Step {
	seen, link := fmt.Sprintf("%s: %v", s.Probes.Name, s.Probes.LookUp.Err), s.Resolved.V.Links[s.Index(s.Interface)]
	unsupported := func(code, setting string) Step {
		return fail(code, fmt.Sprintf("%s; %s=yes, which the nameservers do not support", seen, setting),
			"set "+setting+"=no for the link, or in /etc/systemd/resolved.conf, then restart it",
			fmt.Sprintf("sudo sed -i 's/^%s=.*/%[1]s=no/' /etc/systemd/resolved.conf", setting), restartResolved)
	}
	say := "fix the nameservers before this, then ask again"
	if slices.ContainsFunc(s.Probes.Servers.V, fine) {
		switch {
		case link.DNSOverTLS == "yes":
			return unsupported("lookup-dns-over-tls", "DNSOverTLS")
		case strings.Contains(seen, "signature-expired"):
			return fail("lookup-expired", seen, "check this machine's clock", "timedatectl")
		case link.DNSSEC == "yes":
			return unsupported("lookup-dnssec", "DNSSEC")
		}
		say = "the nameservers answer when asked directly: ask systemd-resolved why it does not"
	}
	return fail("lookup-failed", seen, say, "resolvectl query "+shell(s.Probes.Name))
}

// otherLink checks lookups that systemd-resolved sends to another link. The result is
// zero if there are none, or they succeed.
func otherLink(s *machine.Snapshot) Step {
	iface := s.AllNames()
	if iface == "" || s.Probes.Public.Err == nil {
		return Step{}
	}
	return fail("lookup-other-link",
		fmt.Sprintf("all names but those of %s's domains are asked of %s (domain ~.), whose nameservers %s do not answer: %v",
			s.Interface, iface, list(s.Resolved.V.Links[s.Index(iface)].Addrs()), s.Probes.Public.Err),
		"fix that link, or take the domain from it", "sudo resolvectl domain "+shell(iface)+" ''")
}
