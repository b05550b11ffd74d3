package machine_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/bustest"
)

// readOnly is every method call that may go over the bus.
var readOnly = []string{
	"org.freedesktop.DBus.Hello",
	"org.freedesktop.DBus.Properties.Get",
	"org.freedesktop.DBus.Properties.GetAll",
	"org.freedesktop.DBus.ObjectManager.GetManagedObjects",
	"org.freedesktop.NetworkManager.Settings.Connection.GetSettings",
	"org.freedesktop.resolve1.Manager.ResolveHostname",
	"org.freedesktop.systemd1.Manager.ListUnitFilesByPatterns",
	"org.freedesktop.systemd1.Manager.ListUnitsByPatterns",
}

// connect returns a connection, and checks at the end that nothing went
// over the bus that could change anything.
func connect(t *testing.T, b *bustest.Bus, far ...*dbus.Conn) *dbus.Conn {
	t.Helper()
	calls := b.Monitor(t, far...)
	conn := b.Connect(t)
	t.Cleanup(func() {
		time.Sleep(10 * time.Millisecond) // what the monitor has not been sent yet
		for _, c := range calls() {
			if !slices.Contains(readOnly, c) {
				t.Errorf("called %s", c)
			}
		}
	})
	return conn
}

// far is a connection that owns a name.
func far(t *testing.T, b *bustest.Bus, name string) *dbus.Conn {
	t.Helper()
	conn := b.Connect(t)
	if _, err := conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	return conn
}

func export(t *testing.T, conn *dbus.Conn, v any, path dbus.ObjectPath, iface string) {
	t.Helper()
	if err := conn.Export(v, path, iface); err != nil {
		t.Fatal(err)
	}
}

type (
	props   = map[string]dbus.Variant
	objects map[dbus.ObjectPath]map[string]props
)

func variants(kv ...any) props {
	p := props{}
	for i := 0; i < len(kv); i += 2 {
		p[kv[i].(string)] = dbus.MakeVariant(kv[i+1])
	}
	return p
}

// GetManagedObjects is the method of that name.
func (o objects) GetManagedObjects() (map[dbus.ObjectPath]map[string]props, *dbus.Error) {
	return o, nil
}

// profile is a connection profile.
type profile struct {
	settings map[string]props
	err      *dbus.Error
}

// GetSettings is the method of that name.
func (p profile) GetSettings() (map[string]props, *dbus.Error) { return p.settings, p.err }

const nmPath = "/org/freedesktop/NetworkManager"

// two is a NetworkManager with a device that has a lease, and one that has not. A third has an IP interface of another name, as with PPP.
var two = objects{
	nmPath: {"org.freedesktop.NetworkManager": variants("Version", "1.52.1", "GlobalDnsConfiguration", props{})},
	nmPath + "/DnsManager": {"org.freedesktop.NetworkManager.DnsManager": variants("Mode", "default", "RcManager", "symlink",
		"Configuration", []props{variants("interface", "eth0", "nameservers", []string{"168.63.129.16"}, "domains", []string{"a.example"})})},
	nmPath + "/Devices/2": {"org.freedesktop.NetworkManager.Device": variants("Interface", "eth0", "IpInterface", "eth0", "Managed", true,
		"State", uint32(100), "StateReason", struct{ A, B uint32 }{100, 0}, "ActiveConnection", dbus.ObjectPath(nmPath+"/ActiveConnection/1"),
		"Dhcp4Config", dbus.ObjectPath(nmPath+"/DHCP4Config/1"))},
	nmPath + "/Devices/3": {"org.freedesktop.NetworkManager.Device": variants("Interface", "eth1", "IpInterface", "", "Managed", true,
		"State", uint32(30), "StateReason", struct{ A, B uint32 }{30, 5}, "ActiveConnection", dbus.ObjectPath("/"), "Dhcp4Config", dbus.ObjectPath("/"))},
	nmPath + "/Devices/4": {"org.freedesktop.NetworkManager.Device": variants("Interface", "ttyUSB0", "IpInterface", "veth9", "Managed", true,
		"State", uint32(100), "ActiveConnection", dbus.ObjectPath(nmPath+"/ActiveConnection/2"), "Dhcp4Config", dbus.ObjectPath("/"))},
	nmPath + "/DHCP4Config/1": {"org.freedesktop.NetworkManager.DHCP4Config": variants("Options",
		variants("ip_address", "10.77.0.50", "domain_name_servers", "168.63.129.16", "private_245", "a8:3f:81:10"))},
	nmPath + "/ActiveConnection/1": {"org.freedesktop.NetworkManager.Connection.Active": variants("Id", "Wired", "Connection", dbus.ObjectPath(nmPath+"/Settings/1"), "StateFlags", uint32(0x4c))},
	nmPath + "/ActiveConnection/2": {"org.freedesktop.NetworkManager.Connection.Active": variants("Id", "veth9", "Connection", dbus.ObjectPath(nmPath+"/Settings/2"), "StateFlags", uint32(0x8c))},
}

func TestReadNetworkManager(t *testing.T) {
	b := bustest.New(t)
	manager := far(t, b, "org.freedesktop.NetworkManager")
	export(t, manager, two, "/org/freedesktop", "org.freedesktop.DBus.ObjectManager")
	export(t, manager, profile{settings: map[string]props{"ipv4": variants("method", "auto", "ignore-auto-dns", true)}}, nmPath+"/Settings/1", "org.freedesktop.NetworkManager.Settings.Connection")
	export(t, manager, profile{err: dbus.NewError("org.freedesktop.NetworkManager.Settings.PermissionDenied", nil)}, nmPath+"/Settings/2", "org.freedesktop.NetworkManager.Settings.Connection")
	got, err := nm.ReadWithProfiles(t.Context(), connect(t, b, manager))
	if err != nil {
		t.Fatal(err)
	}
	azure := netip.MustParseAddr("168.63.129.16")
	lease := nm.Lease{Address: netip.MustParseAddr("10.77.0.50"), Nameservers: []netip.Addr{azure}, WireServer: azure}
	want := nm.Snapshot{
		Version: "1.52.1", DNSMode: "default", RcManager: "symlink",
		Devices: []nm.Device{
			{Interface: "eth0", Managed: true, State: 100, Profile: nm.Profile{Name: "Wired", Method: "auto", IgnoreAutoDNS: true}, Lease: &lease},
			{Interface: "eth1", Managed: true, State: 30, Reason: 5},
			{Interface: "veth9", Managed: true, State: 100, Profile: nm.Profile{Name: "veth9"}, External: true},
		},
	}
	addrs := cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})
	if diff := cmp.Diff(want, got, addrs, cmpopts.IgnoreUnexported(nm.Device{}), cmpopts.IgnoreFields(nm.Snapshot{}, "Configuration")); diff != "" {
		t.Errorf("NetworkManager (-want +got):\n%s", diff)
	}
	wish := nm.DNSConfig{Nameservers: []netip.Addr{azure}, Domains: []string{"a.example"}}
	if diff := cmp.Diff(wish, got.DNSConfig("eth0"), addrs); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if !got.DNSConfig("eth1").Empty() {
		t.Errorf("configuration of eth1 is %v", got.DNSConfig("eth1"))
	}
	if _, ok := got.Device("eth7"); ok {
		t.Error("there is an eth7")
	}
}

func TestReadResolved(t *testing.T) {
	b := bustest.New(t)
	r := b.Resolved(t, 2)
	r.Set([]bustest.Server{{Ifindex: 2, Family: 2, Addr: []byte{168, 63, 129, 16}}, {Ifindex: 12, Family: 2, Addr: []byte{8, 8, 8, 8}}, {Family: 2, Addr: []byte{9, 9, 9, 9}}},
		[]bustest.Domain{{Ifindex: 2, Name: "a.example"}, {Ifindex: 7, Name: ".", RouteOnly: true}})
	export(t, r.Conn, link(variants("DNSSEC", "yes", "DNSOverTLS", "no")), "/org/freedesktop/resolve1/link/_312", "org.freedesktop.DBus.Properties")
	conn := connect(t, b, r.Conn)
	got, err := resolv.ReadSnapshot(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	server := func(a string) []resolv.Server { return []resolv.Server{{Addr: netip.MustParseAddr(a)}} }
	want := resolv.Snapshot{Global: server("9.9.9.9"), Links: map[int]resolv.Link{
		2:  {State: resolv.State{Nameservers: server("168.63.129.16"), Domains: []resolv.Domain{{Name: "a.example"}}}},
		12: {State: resolv.State{Nameservers: server("8.8.8.8")}, DNSSEC: "yes", DNSOverTLS: "no"},
		7:  {State: resolv.State{Domains: []resolv.Domain{{Name: ".", RouteOnly: true}}}},
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("resolved (-want +got):\n%s", diff)
	}
	if global := got.State(12).Global; len(global) != 1 {
		t.Errorf("global servers are %v", global)
	}
	r.Fail("org.freedesktop.DBus.Error.AccessDenied")
	if _, err := resolv.ReadSnapshot(t.Context(), conn); err == nil || !strings.Contains(err.Error(), "as the test wants") {
		t.Errorf("error is %v", err)
	}
}

// link is a link's object.
type link props

// GetAll is the method of that name of org.freedesktop.DBus.Properties.
func (l link) GetAll(string) (map[string]dbus.Variant, *dbus.Error) { return l, nil }

// hostnames answers ResolveHostname.
type hostnames struct{ fail string }

type address struct {
	Ifindex int32
	Family  int32
	Addr    []byte
}

// ResolveHostname is the method of that name.
func (h hostnames) ResolveHostname(ifindex int32, name string, family int32, flags uint64) ([]address, string, uint64, *dbus.Error) {
	if h.fail != "" || ifindex != 0 || family != 0 || flags != 1<<12 {
		return nil, "", 0, dbus.NewError(h.fail, []any{"'" + name + "' not found"})
	}
	return []address{{2, 2, []byte{10, 77, 0, 5}}, {2, 10, make([]byte, 16)}, {2, 2, []byte{1}}}, name, 1, nil
}

func TestLookUp(t *testing.T) {
	found := resolv.Found{Addrs: []netip.Addr{netip.MustParseAddr("10.77.0.5"), netip.IPv6Unspecified()}}
	tests := []struct {
		name    string
		far     hostnames
		want    resolv.Found
		wantErr string
	}{
		{"found", hostnames{}, found, ""},
		{"no such name", hostnames{fail: "org.freedesktop.resolve1.DnsError.NXDOMAIN"}, resolv.Found{Error: "org.freedesktop.resolve1.DnsError.NXDOMAIN"}, ""},
		{"no address", hostnames{fail: "org.freedesktop.resolve1.NoSuchRR"}, resolv.Found{Error: "org.freedesktop.resolve1.NoSuchRR"}, ""},
		{"no nameservers", hostnames{fail: "org.freedesktop.resolve1.NoNameServers"}, resolv.Found{}, "'a.example' not found (org.freedesktop.resolve1.NoNameServers)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := bustest.New(t)
			resolved := far(t, b, "org.freedesktop.resolve1")
			export(t, resolved, tt.far, "/org/freedesktop/resolve1", "org.freedesktop.resolve1.Manager")
			got, err := resolv.LookUp(t.Context(), connect(t, b, resolved), "a.example")
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if text(err) != tt.wantErr {
				t.Errorf("error is %q, want %q", text(err), tt.wantErr)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// systemd knows the units of this map: file state and active state.
type systemd map[string][2]string

type (
	unitFile   struct{ Path, State string }
	loadedUnit struct {
		Name, Description, Load, Active, Sub, Following string

		Path    dbus.ObjectPath
		Job     uint32
		JobType string
		JobPath dbus.ObjectPath
	}
)

// ListUnitFilesByPatterns is the method of that name, for patterns that are names.
func (s systemd) ListUnitFilesByPatterns(_, names []string) ([]unitFile, *dbus.Error) {
	var out []unitFile
	for name, u := range s {
		if u[0] != "" && slices.Contains(names, name) {
			out = append(out, unitFile{"/usr/lib/systemd/system/" + name, u[0]})
		}
	}
	return out, nil
}

// ListUnitsByPatterns is the method of that name, for patterns that are names.
func (s systemd) ListUnitsByPatterns(_, names []string) ([]loadedUnit, *dbus.Error) {
	var out []loadedUnit
	for name, u := range s {
		if u[1] != "" && slices.Contains(names, name) {
			out = append(out, loadedUnit{Name: name, Active: u[1], Sub: "auto-restart", Path: dbus.ObjectPath("/unit/" + strings.ReplaceAll(name, ".", "_2e")), JobPath: "/"})
		}
	}
	return out, nil
}

// status has the properties of a unit.
type status map[string]any

// Get is the method of that name of org.freedesktop.DBus.Properties.
func (s status) Get(_, name string) (dbus.Variant, *dbus.Error) {
	if v, ok := s[name]; ok {
		return dbus.MakeVariant(v), nil
	}
	return dbus.Variant{}, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", nil)
}

func TestReadUnits(t *testing.T) {
	b := bustest.New(t)
	manager := far(t, b, "org.freedesktop.systemd1")
	units := systemd{"a.service": {"enabled", ""}, "b.timer": {"static", "active"}, "c.service": {"", "activating"}, "e.service": {"enabled", "active"}}
	export(t, manager, units, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
	export(t, manager, status{"Result": "exit-code", "ExecMainStatus": int32(226)}, "/unit/c_2eservice", "org.freedesktop.DBus.Properties")
	got, err := machine.ReadUnits(t.Context(), connect(t, b, manager), []string{"a.service", "b.timer", "c.service", "d.service"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]machine.Unit{
		"a.service": {File: "enabled"}, "b.timer": {File: "static", Active: "active"},
		"c.service": {Active: "activating", Sub: "auto-restart", Result: "exit-code", Exit: 226},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}

// calls are the four reads, each of which must find its far end missing, or give
// up when that hangs.
var calls = map[string]func(context.Context, *dbus.Conn) error{
	"org.freedesktop.NetworkManager": func(ctx context.Context, c *dbus.Conn) error {
		_, err := nm.ReadWithProfiles(ctx, c)
		return err
	},
	"org.freedesktop.resolve1": func(ctx context.Context, c *dbus.Conn) error {
		_, err := resolv.ReadSnapshot(ctx, c)
		return errors.Join(err, second(resolv.LookUp(ctx, c, "a.example")))
	},
	"org.freedesktop.systemd1": func(ctx context.Context, c *dbus.Conn) error {
		_, err := machine.ReadUnits(ctx, c, []string{"a.service"})
		return err
	},
}

func second[T any](_ T, err error) error { return err }

func TestNotRunning(t *testing.T) {
	b := bustest.New(t)
	conn := connect(t, b)
	for name, want := range map[string]error{"org.freedesktop.NetworkManager": nm.ErrNotRunning, "org.freedesktop.resolve1": resolv.ErrNotRunning} {
		if err := calls[name](t.Context(), conn); !errors.Is(err, want) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if err := calls["org.freedesktop.systemd1"](t.Context(), conn); err == nil {
		t.Error("units are known without systemd")
	}
}

// A far end that reads nothing is given up when the context ends, and the error
// says why it did.
func TestHangs(t *testing.T) {
	b := bustest.New(t)
	conn := b.Connect(t)
	for name, call := range calls {
		silent(t, b, name)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("time is up"))
		defer cancel()
		start := time.Now()
		err := call(ctx, conn)
		if err == nil || !strings.Contains(err.Error(), "time is up") || strings.Contains(err.Error(), "context") {
			t.Errorf("%s: error is %v", name, err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// mute handles every call by not answering until the test ends.
type mute struct{ done <-chan struct{} }

func (m mute) LookupObject(dbus.ObjectPath) (dbus.ServerObject, bool) { return m, true }
func (m mute) LookupInterface(string) (dbus.Interface, bool)          { return m, true }
func (m mute) LookupMethod(string) (dbus.Method, bool) {
	<-m.done
	return nil, false
}

func silent(t *testing.T, b *bustest.Bus, name string) {
	t.Helper()
	conn, err := dbus.Connect(b.Address, dbus.WithHandler(mute{t.Context().Done()}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
}
