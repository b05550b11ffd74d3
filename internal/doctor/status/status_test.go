package status_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/status"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/golden"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/schematest"
)

const bootID = "b0070001-0000-4000-8000-000000000001"

var (
	azureDNS = netip.MustParseAddr("168.63.129.16")
	other    = netip.MustParseAddr("203.0.113.1")
	at       = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
)

func ready() boot.CheckIn {
	return boot.CheckIn{
		BootID: bootID, State: boot.Ready, WireServer: "168.63.129.16", Source: boot.FromOption245, Via: "health", Interface: "eth0",
		Incarnation: "1", ContainerID: "c", InstanceID: "i", Attempts: 1, StartedAt: at, UpdatedAt: at.Add(time.Second), AfterBootMS: 2104,
	}
}

func servers(addrs ...netip.Addr) resolv.Link {
	var l resolv.Link
	for _, a := range addrs {
		l.Nameservers = append(l.Nameservers, resolv.Server{Addr: a})
	}
	return l
}

// healthy is a machine that is ready, with one interface.
func healthy() *machine.Snapshot {
	return &machine.Snapshot{
		Platform: machine.Platform{Azure: true, Why: "ignition.platform.id=azure"}, Interface: "eth0",
		Records: machine.Records{BootID: bootID, CheckIn: machine.Seen[boot.CheckIn]{V: ready()}, Links: map[string]machine.Seen[boot.Link]{}},
		NM: machine.Seen[nm.Snapshot]{V: nm.Snapshot{
			Devices:       []nm.Device{{Interface: "eth0", State: 100, Managed: true, Lease: &nm.Lease{Nameservers: []netip.Addr{azureDNS}}}, {Interface: "veth9"}},
			Configuration: []map[string]any{{"interface": "eth0", "nameservers": []string{"168.63.129.16"}, "domains": []string{"a.example"}}},
		}},
		Networkd: machine.Seen[[]networkd.Link]{Err: networkd.ErrNotRunning},
		Resolved: machine.Seen[resolv.Snapshot]{V: resolv.Snapshot{Links: map[int]resolv.Link{2: servers(azureDNS)}}},
		Kernel: machine.Kernel{
			Links: []machine.Link{{Name: "eth0", Index: 2}, {Name: "eth1", Index: 3}, {Name: "tun0", Index: 4}}, DefaultRoutes: []string{"eth0"},
		},
	}
}

func record(m *machine.Snapshot, iface string, rec boot.Link) {
	rec.Interface = iface
	m.Records.Links[iface] = machine.Seen[boot.Link]{V: rec}
}

// A record does not make nameservers ours that are others by now.
func TestNotFromUs(t *testing.T) {
	m := healthy()
	record(m, "eth0", boot.Link{State: boot.Pushed, Nameservers: []netip.Addr{other}})
	if from := status.Of(m).Links[0].From; from != "networkmanager" {
		t.Errorf("from %q, want networkmanager, which wants what the link has", from)
	}
}

func TestStatus(t *testing.T) {
	tests := []struct {
		name   string // of the golden files
		change func(*machine.Snapshot)
		ready  bool
	}{
		{"ready", func(*machine.Snapshot) {}, true},
		{"pushed", func(m *machine.Snapshot) {
			record(m, "eth0", boot.Link{State: boot.Pushed, Nameservers: []netip.Addr{azureDNS}})
		}, true},
		{"left", func(m *machine.Snapshot) {
			l := servers(other)
			l.Domains = []resolv.Domain{{Name: "a.example"}, {Name: "corp.example", RouteOnly: true}}
			m.Resolved.V.Links[2] = l
			record(m, "eth0", boot.Link{State: boot.Left, Reason: "something else configured other nameservers for the link"})
		}, true},
		{"none", func(m *machine.Snapshot) {
			m.Platform.Why = "chassis asset tag 7783-7084-3265-9085-8269-3286-77"
			m.Records.CheckIn = machine.Seen[boot.CheckIn]{Err: fs.ErrNotExist}
			m.Resolved.V.Links, m.NM.V.Devices[0].Lease.Nameservers, m.NM.V.Configuration = nil, nil, nil
		}, false},
		{"trying", func(m *machine.Snapshot) {
			rec := &m.Records.CheckIn.V
			rec.State, rec.Attempts, rec.Interface, rec.Source = boot.Trying, 17, "", boot.FromConstant
			rec.LastError = "wire: GET http://168.63.129.16/machine/?comp=goalstate: dial tcp 168.63.129.16:80: connect: no route to host"
			m.Units.V = map[string]machine.Unit{machine.UnitCheckIn: {Active: "activating"}}
		}, false},
		// D12: the unit is stopped or masked.
		{"nobody-tries", func(m *machine.Snapshot) { m.Records.CheckIn.V.State = boot.Trying }, false},
		{"no-systemd", func(m *machine.Snapshot) {
			m.Records.CheckIn.V.State = boot.Trying
			m.Units.Err = errors.New("systemd does not answer: no answer within 2s")
		}, false},
		{"failed", func(m *machine.Snapshot) {
			m.Records.CheckIn.V.State, m.Records.CheckIn.V.Source = boot.Failed, boot.FromOperator
		}, false},
		{"two-interfaces", func(m *machine.Snapshot) {
			m.NM.V.Devices = append(m.NM.V.Devices, nm.Device{Interface: "eth1", Lease: &nm.Lease{Nameservers: []netip.Addr{other}}})
			m.NM.V.Configuration = append(m.NM.V.Configuration, map[string]any{"interface": "eth1", "nameservers": []string{"dns+tls://203.0.113.1#name"}})
			m.Kernel.DefaultRoutes = []string{"tun0", "eth0"}
			m.Resolved.V.Links[3], m.Resolved.V.Links[4] = servers(other), servers(other)
		}, true},
		// D18: neither a lease nor a default route.
		{"only-a-record", func(m *machine.Snapshot) {
			record(m, "tun0", boot.Link{State: boot.Pushed, Nameservers: []netip.Addr{other}})
			m.Resolved.V.Links[4] = servers(other)
		}, true},
		{"networkd", func(m *machine.Snapshot) {
			m.NM = machine.Seen[nm.Snapshot]{Err: nm.ErrNotRunning}
			m.Networkd = machine.Seen[[]networkd.Link]{V: []networkd.Link{{
				Name: "eth0", Index: 2, Managed: true, Lease: &nm.Lease{Nameservers: []netip.Addr{azureDNS}}, Nameservers: []netip.Addr{azureDNS},
			}}}
		}, true},
		{"unreadable", func(m *machine.Snapshot) {
			m.Records.CheckIn = machine.Seen[boot.CheckIn]{Err: errors.New("boot: /run/nm-azure-dispatch/check-in.json is a directory, want a regular file: remove it")}
			m.NM = machine.Seen[nm.Snapshot]{Err: errors.New("no answer within 2s")}
			m.Resolved = machine.Seen[resolv.Snapshot]{Err: resolv.ErrNotRunning}
		}, false},
		{"not-azure", func(m *machine.Snapshot) {
			*m = machine.Snapshot{Platform: machine.Platform{Why: "ignition.platform.id=qemu"}}
		}, false},
		{"platform-unknown", func(m *machine.Snapshot) {
			*m = machine.Snapshot{Platform: machine.Platform{Err: errors.New("azure: open /proc/cmdline: permission denied")}}
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := healthy()
			tt.change(m)
			s := status.Of(m)
			if m.Ready() != tt.ready {
				t.Errorf("ready: %v, want %v", m.Ready(), tt.ready)
			}
			var text, colour bytes.Buffer
			if err := errors.Join(s.Print(&text, false), s.Print(&colour, true)); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", tt.name+".txt"), text.String())
			for line := range strings.Lines(text.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > term.Width {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			if got := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(colour.String()); got != text.String() {
				t.Errorf("in colour it reads\n%s", got)
			}
			b, err := json.MarshalIndent(s, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", tt.name+".json"), string(b)+"\n")
			schematest.Check(t, "../../../docs/schema/status.json", s)
		})
	}
}
