package bustest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

const (
	resolvedName = "org.freedesktop.resolve1"
	resolvedPath = "/org/freedesktop/resolve1"
)

// Server is an element of the Manager's DNSEx property.
type Server struct {
	Ifindex int32
	Family  int32
	Addr    []byte
	Port    uint16
	Name    string
}

// Domain is an element of the Manager's Domains property.
type Domain struct {
	Ifindex   int32
	Name      string
	RouteOnly bool
}

// Resolved is exported as org.freedesktop.resolve1. It knows the links of the
// indexes it was given.
type Resolved struct {
	Conn *dbus.Conn // the connection that it is on

	mu      sync.Mutex
	links   map[int32]bool
	servers []Server
	domains []Domain
	calls   []string
	fail    *dbus.Error
	without []string
}

// Resolved exports a resolved with nothing set.
func (b *Bus) Resolved(t testing.TB, links ...int32) *Resolved {
	t.Helper()
	r := &Resolved{Conn: b.Connect(t), links: map[int32]bool{}}
	for _, l := range links {
		r.links[l] = true
	}
	for iface, methods := range map[string]map[string]any{
		resolvedName + ".Manager": {
			"SetLinkDNS": r.setLinkDNS, "SetLinkDomains": r.setLinkDomains,
			"FlushCaches": func() *dbus.Error { return r.change(0, "FlushCaches", func() {}) },
		},
		"org.freedesktop.DBus.Properties": {"GetAll": r.properties},
	} {
		if err := r.Conn.ExportMethodTable(methods, resolvedPath, iface); err != nil {
			t.Fatal(err)
		}
	}
	if err := own(r.Conn, resolvedName); err != nil {
		t.Fatal(err)
	}
	return r
}

// Fail makes every method fail with a D-Bus error of this name; "" ends that.
func (r *Resolved) Fail(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = nil
	if name != "" {
		r.fail = dbus.NewError(name, []any{"as the test wants"})
	}
}

// Without takes properties away.
func (r *Resolved) Without(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.without = names
}

// Set replaces everything that is set.
func (r *Resolved) Set(servers []Server, domains []Domain) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers, r.domains = servers, domains
}

// Calls returns the calls so far that change something.
func (r *Resolved) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

type address struct {
	Family int32
	Addr   []byte
}

func (r *Resolved) setLinkDNS(ifindex int32, list []address) *dbus.Error {
	return r.change(ifindex, fmt.Sprintf("SetLinkDNS %d %v", ifindex, list), func() {
		r.servers = slices.DeleteFunc(slices.Clone(r.servers), func(s Server) bool { return s.Ifindex == ifindex })
		for _, a := range list {
			r.servers = append(r.servers, Server{Ifindex: ifindex, Family: a.Family, Addr: a.Addr})
		}
	})
}

type name struct {
	Name      string
	RouteOnly bool
}

func (r *Resolved) setLinkDomains(ifindex int32, list []name) *dbus.Error {
	return r.change(ifindex, fmt.Sprintf("SetLinkDomains %d %v", ifindex, list), func() {
		r.domains = slices.DeleteFunc(slices.Clone(r.domains), func(d Domain) bool { return d.Ifindex == ifindex })
		for _, d := range list {
			r.domains = append(r.domains, Domain{ifindex, d.Name, d.RouteOnly})
		}
	})
}

func (r *Resolved) change(ifindex int32, call string, f func()) *dbus.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	if r.fail != nil {
		return r.fail
	}
	if ifindex != 0 && !r.links[ifindex] {
		return dbus.NewError("org.freedesktop.resolve1.NoSuchLink", []any{fmt.Sprintf("Link %d not known", ifindex)})
	}
	f()
	return nil
}

// properties are those of the Manager.
func (r *Resolved) properties(string) (map[string]dbus.Variant, *dbus.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return nil, r.fail
	}
	type plain struct {
		Ifindex int32
		Family  int32
		Addr    []byte
	}
	dns := []plain{}
	for _, s := range r.servers {
		dns = append(dns, plain{s.Ifindex, s.Family, s.Addr})
	}
	props := map[string]dbus.Variant{
		"DNS": dbus.MakeVariant(dns), "DNSEx": dbus.MakeVariant(r.servers), "Domains": dbus.MakeVariant(r.domains),
		"LLMNRHostname": dbus.MakeVariant("guest"),
	}
	for _, name := range r.without {
		delete(props, name)
	}
	return props, nil
}
