package resolv

import (
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

// Equal reports whether the link has exactly these plain servers, in any order:
// resolved keeps the old order when the same set is set again.
func (s State) Equal(want []netip.Addr) bool {
	return len(s.Nameservers) == len(want) && s.Contains(want)
}

// Contains reports whether every address in want is a server of the link.
func (s State) Contains(want []netip.Addr) bool {
	for _, a := range want {
		if !slices.Contains(s.Nameservers, Server{Addr: a}) {
			return false
		}
	}
	return true
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
		if name := strings.ToLower(d.Name); d.RouteOnly || !set[name] {
			return false
		}
	}
	return len(s.Domains) == len(set)
}

// Elements of the Manager's properties DNSEx a(iiayqs), since systemd 246, and
// Domains a(isb). Interface index 0 stands for all links.
type (
	server struct {
		Ifindex int32
		Family  int32
		Addr    []byte
		Port    uint16
		Name    string
	}
	domain struct {
		Ifindex   int32
		Name      string
		RouteOnly bool
	}
)

// parseState returns the state of one link from the Manager's properties.
func parseState(props map[string]dbus.Variant, ifindex int) (State, error) {
	var servers []server
	if err := property(props, "DNSEx", &servers); err != nil {
		return State{}, err
	}
	var domains []domain
	if err := property(props, "Domains", &domains); err != nil {
		return State{}, err
	}

	var s State
	for _, e := range servers {
		addr, ok := netip.AddrFromSlice(e.Addr)
		if !ok {
			continue
		}
		srv := Server{Addr: addr, Port: e.Port, Name: e.Name}
		switch int(e.Ifindex) {
		case 0:
			s.Global = append(s.Global, srv)
		case ifindex:
			s.Nameservers = append(s.Nameservers, srv)
		}
	}
	for _, d := range domains {
		if int(d.Ifindex) == ifindex {
			s.Domains = append(s.Domains, Domain{Name: d.Name, RouteOnly: d.RouteOnly})
		}
	}
	return s, nil
}

// property stores a property in a slice of structs.
func property(props map[string]dbus.Variant, name string, to any) error {
	v, ok := props[name]
	if !ok {
		return fmt.Errorf("property %s is missing", name)
	}
	if err := dbus.Store([]any{v.Value()}, to); err != nil {
		return fmt.Errorf("property %s has signature %s: %w", name, v.Signature(), err)
	}
	return nil
}
