package resolv_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/bustest"
)

var compare = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()}

func addrs(s string) (out []netip.Addr) {
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParseAddr(f))
	}
	return out
}

func TestState(t *testing.T) {
	bus := bustest.New(t)
	resolved := bus.Resolved(t, 2, 3)
	resolved.Set([]bustest.Server{
		{Ifindex: 0, Family: 2, Addr: []byte{9, 9, 9, 9}},
		{Ifindex: 2, Family: 2, Addr: []byte{10, 0, 0, 1}},
		{Ifindex: 2, Family: 10, Addr: addrs("2001:db8::1")[0].AsSlice(), Name: "dns.example", Port: 853},
		{Ifindex: 3, Family: 2, Addr: []byte{10, 3, 0, 1}},
		{Ifindex: 2, Family: 2, Addr: []byte{1, 2, 3}},
	}, []bustest.Domain{{Ifindex: 2, Name: "a.example"}, {Ifindex: 2, Name: ".", RouteOnly: true}, {Ifindex: 3, Name: "c.example"}})
	m := resolv.NewManager(bus.Connect(t))
	want := resolv.State{
		Global:      []resolv.Server{{Addr: addrs("9.9.9.9")[0]}},
		Nameservers: []resolv.Server{{Addr: addrs("10.0.0.1")[0]}, {Addr: addrs("2001:db8::1")[0], Name: "dns.example", Port: 853}},
		Domains:     []resolv.Domain{{Name: "a.example"}, {Name: ".", RouteOnly: true}},
	}
	got, err := m.State(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	snapshot, err := resolv.ReadSnapshot(t.Context(), bus.Connect(t))
	if err != nil || len(snapshot.Links) != 2 {
		t.Errorf("%d links, %v", len(snapshot.Links), err)
	}
	for _, link := range []int{2, 3, 4} { // 4 has nothing
		got, err := m.State(t.Context(), link)
		if diff := cmp.Diff(got, snapshot.State(link), compare); diff != "" || err != nil {
			t.Errorf("link %d, %v (-state +snapshot):\n%s", link, err, diff)
		}
	}
}

// A resolved that says less than it should is an error, and no more.
func TestStateIncomplete(t *testing.T) {
	bus := bustest.New(t)
	resolved := bus.Resolved(t, 2)
	m := resolv.NewManager(bus.Connect(t))
	for _, tt := range []struct{ without, err string }{
		{"Domains", "resolv: read: property Domains is missing"},
		{"DNSEx", "resolv: read: property DNSEx is missing"},
	} {
		resolved.Without(tt.without)
		if _, err := m.State(t.Context(), 2); err == nil || err.Error() != tt.err {
			t.Errorf("without %s: %v, want %s", tt.without, err, tt.err)
		}
	}
}

func TestSet(t *testing.T) {
	bus := bustest.New(t)
	resolved := bus.Resolved(t, 2)
	m := resolv.NewManager(bus.Connect(t))
	steps := []error{
		m.SetNameservers(t.Context(), 2, addrs("10.0.0.1 2001:db8::1")),
		m.SetDomains(t.Context(), 2, []string{"a.example"}),
		m.FlushCaches(t.Context()),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	got, err := m.State(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Equal(addrs("2001:db8::1 10.0.0.1")) || !got.EqualDomains([]string{"a.example."}) {
		t.Errorf("resolved has %+v", got)
	}
	if err := errors.Join(m.SetNameservers(t.Context(), 2, nil), m.SetDomains(t.Context(), 2, nil)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"SetLinkDNS 2 [{2 [10 0 0 1]} {10 [32 1 13 184 0 0 0 0 0 0 0 0 0 0 0 1]}]",
		"SetLinkDomains 2 [{a.example false}]", "FlushCaches", "SetLinkDNS 2 []", "SetLinkDomains 2 []",
	}
	if diff := cmp.Diff(want, resolved.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// A change starts resolved, and so does the look before it. Whoever only wants to know does not.
func TestStart(t *testing.T) {
	bus := bustest.New(t)
	bus.Activatable(t, "org.freedesktop.resolve1")
	m := resolv.NewManager(bus.Connect(t))
	_, read := m.State(t.Context(), 2)
	_, snapshot := resolv.ReadSnapshot(t.Context(), bus.Connect(t))
	_, lookUp := resolv.LookUp(t.Context(), bus.Connect(t), "a.example")
	for _, tt := range []struct {
		name  string
		err   error
		start bool
	}{
		{"State", read, true},
		{"SetNameservers", m.SetNameservers(t.Context(), 2, nil), true},
		{"ReadSnapshot", snapshot, false},
		{"LookUp", lookUp, false},
	} {
		if tt.err == nil || strings.Contains(tt.err.Error(), "Spawn.ChildExited") != tt.start {
			t.Errorf("%s: %v; tries to start it: want %v", tt.name, tt.err, tt.start)
		}
	}
}

// A resolved that does not answer, or exits, keeps no run waiting that flushes its caches.
func TestFlushDoesNotWait(t *testing.T) {
	bus := bustest.New(t)
	resolved := bus.Resolved(t, 2)
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	flush := map[string]any{"FlushCaches": func() *dbus.Error { <-end; return nil }}
	if err := resolved.Conn.ExportMethodTable(flush, "/org/freedesktop/resolve1", "org.freedesktop.resolve1.Manager"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := resolv.NewManager(bus.Connect(t)).FlushCaches(ctx); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	bus := bustest.New(t)
	m := resolv.NewManager(bus.Connect(t))
	if _, err := m.State(t.Context(), 2); !errors.Is(err, resolv.ErrNotRunning) {
		t.Errorf("nobody owns the name: %v", err)
	}
	resolved := bus.Resolved(t, 2)
	if err := m.SetNameservers(t.Context(), 9, nil); !errors.Is(err, resolv.ErrNoSuchLink) {
		t.Errorf("unknown link: %v", err)
	}
	tests := []struct {
		name string
		want error
	}{
		{"org.freedesktop.systemd1.NoSuchUnit", resolv.ErrNotRunning},
		{"org.freedesktop.systemd1.UnitMasked", resolv.ErrNotRunning},
		{"org.freedesktop.DBus.Error.FileExists", resolv.ErrNotRunning},
		{"org.freedesktop.DBus.Error.NameHasNoOwner", resolv.ErrNotRunning},
		{"org.freedesktop.DBus.Error.Spawn.ChildExited", resolv.ErrNotRunning},
		{"org.freedesktop.systemd1.ShuttingDown", resolv.ErrNotRunning},
		{"org.freedesktop.resolve1.LinkBusy", resolv.ErrLinkBusy},
		{"org.freedesktop.resolve1.NoSuchLink", resolv.ErrNoSuchLink},
		{"org.freedesktop.DBus.Error.UnknownObject", resolv.ErrNoSuchLink},
		{"org.freedesktop.DBus.Error.NoReply", resolv.ErrNoReply},
		{"org.freedesktop.DBus.Error.InvalidArgs", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resolved.Fail(tt.name)
			err := m.SetNameservers(t.Context(), 2, nil)
			for _, s := range []error{resolv.ErrNotRunning, resolv.ErrLinkBusy, resolv.ErrNoSuchLink, resolv.ErrNoReply} {
				if errors.Is(err, s) != (s == tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
			}
			if err == nil || !strings.Contains(err.Error(), tt.name) {
				t.Errorf("error %v does not name %s", err, tt.name)
			}
		})
	}
}
