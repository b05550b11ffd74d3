package resolv

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Server is a nameserver in resolved's configuration.
type Server struct {
	Addr netip.Addr
	Port uint16 // 0: the protocol's own
	Name string // the name that its certificate must have; "" for none
}

// Domain is a search domain, or one that only routes queries.
type Domain struct {
	Name      string // without the closing dot; "." is the root
	RouteOnly bool
}

// State is resolved's configuration of one link, and the global one.
type State struct {
	Global      []Server // servers that belong to no link (DNS= in resolved.conf, a foreign resolv.conf)
	Nameservers []Server // servers of the link, in resolved's order
	Domains     []Domain // domains of the link
}

// Addrs returns the servers of the link and then the global ones, without duplicates.
func (s State) Addrs() []netip.Addr {
	var out []netip.Addr
	for _, srv := range slices.Concat(s.Nameservers, s.Global) {
		if !slices.Contains(out, srv.Addr) {
			out = append(out, srv.Addr)
		}
	}
	return out
}

// Equal reports whether the link has exactly these plain servers, in any order:
// resolved keeps the old order when the same set is set again.
func (s State) Equal(want []netip.Addr) bool {
	return len(s.Nameservers) == len(want) && s.Contains(want)
}

// Contains reports whether every address in want is a server of the link.
func (s State) Contains(want []netip.Addr) bool {
	return !slices.ContainsFunc(want, func(a netip.Addr) bool { return !slices.Contains(s.Nameservers, Server{Addr: a}) })
}

// EqualDomains reports whether the link has exactly these search domains, in any
// order. Case does not count, nor does a closing dot: resolved drops
// names that differ only in these.
func (s State) EqualDomains(want []string) bool {
	set := map[string]bool{}
	for _, d := range want {
		set[strings.ToLower(strings.TrimSuffix(d, "."))] = true
	}
	for _, d := range s.Domains {
		if d.RouteOnly || !set[strings.ToLower(d.Name)] {
			return false
		}
	}
	return len(s.Domains) == len(set)
}

// Snapshot is the state of resolved and its links at one moment.
type Snapshot struct {
	ResolvConf string // ResolvConfMode: "stub", "uplink", "static", "missing", "foreign"; "" before systemd 254
	Stub       string // DNSStubListener: "yes", "no", "udp", "tcp"
	Global     []Server
	Links      map[int]Link // by index: those with nameservers or domains
}

// Link is the state of one link in a snapshot.
type Link struct {
	State             // without Global
	DNSSEC     string // "yes", "no", "allow-downgrade"; only with nameservers
	DNSOverTLS string // "yes", "no", "opportunistic"; only with nameservers
}

// State returns the configuration of a link and the global one.
func (s Snapshot) State(ifindex int) State {
	state := s.Links[ifindex].State
	state.Global = s.Global
	return state
}

// parse decodes the Manager's properties, of which DNSEx, since systemd 246, and
// Domains have an entry for each server and domain. Index 0 stands for all links.
func parse(props map[string]dbus.Variant) (Snapshot, error) {
	s := Snapshot{ResolvConf: text(props, "ResolvConfMode"), Stub: text(props, "DNSStubListener"), Links: map[int]Link{}}
	var servers []struct {
		Ifindex int32
		Family  int32
		Addr    []byte
		Port    uint16
		Name    string
	}
	var domains []struct {
		Ifindex   int32
		Name      string
		RouteOnly bool
	}
	if err := errors.Join(list(props, "DNSEx", &servers), list(props, "Domains", &domains)); err != nil {
		return s, err
	}
	for _, e := range servers {
		addr, ok := netip.AddrFromSlice(e.Addr)
		srv := Server{Addr: addr, Port: e.Port, Name: e.Name}
		switch l := s.Links[int(e.Ifindex)]; {
		case !ok:
		case e.Ifindex == 0:
			s.Global = append(s.Global, srv)
		default:
			l.Nameservers = append(l.Nameservers, srv)
			s.Links[int(e.Ifindex)] = l
		}
	}
	for _, e := range domains {
		if l := s.Links[int(e.Ifindex)]; e.Ifindex != 0 {
			l.Domains = append(l.Domains, Domain{Name: e.Name, RouteOnly: e.RouteOnly})
			s.Links[int(e.Ifindex)] = l
		}
	}
	return s, nil
}

// list stores a property in a slice of structs.
func list(props map[string]dbus.Variant, name string, to any) error {
	v, ok := props[name]
	if !ok {
		return fmt.Errorf("property %s is missing", name)
	}
	if err := v.Store(to); err != nil {
		return fmt.Errorf("property %s has signature %s: %w", name, v.Signature(), err)
	}
	return nil
}

// text returns a property, "" if it is missing or no string.
func text(props map[string]dbus.Variant, name string) string {
	s, _ := props[name].Value().(string)
	return s
}
