package status_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/status"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/schematest"
)

var update = flag.Bool("update", false, "write the golden files anew")

const bootID = "b0070001-0000-4000-8000-000000000001"

var (
	azureDNS = netip.MustParseAddr("168.63.129.16")
	other    = netip.MustParseAddr("203.0.113.1")
	at       = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
)

// machine is what a test makes of it.
type machine struct {
	files       fstest.MapFS
	records     boot.Dir
	nm          live.NetworkManager
	nmErr       error
	resolved    map[int]live.Resolved
	resolvedErr error
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func ready() boot.CheckIn {
	return boot.CheckIn{
		BootID: bootID, State: boot.Ready, WireServer: "168.63.129.16", Source: boot.FromOption245, Via: "health", Interface: "eth0",
		Incarnation: "1", ContainerID: "c", InstanceID: "i", Attempts: 1, StartedAt: at, UpdatedAt: at.Add(time.Second), AfterBootMS: 2104,
	}
}

func servers(addrs ...netip.Addr) live.Resolved {
	var r live.Resolved
	for _, a := range addrs {
		r.State.Nameservers = append(r.State.Nameservers, resolv.Server{Addr: a})
	}
	return r
}

// healthy is a machine that is ready, with one interface.
func healthy(t *testing.T) *machine {
	t.Helper()
	lease := nm.Lease{Nameservers: []netip.Addr{azureDNS}}
	m := &machine{
		files: fstest.MapFS{
			"proc/cmdline": file("ignition.platform.id=azure"), "proc/sys/kernel/random/boot_id": file(bootID + "\n"),
			"proc/net/route":             file("eth0\t00000000\t01004D0A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"),
			"sys/class/net/eth0/ifindex": file("2\n"),
			"sys/class/net/eth1/ifindex": file("3\n"),
			"sys/class/net/tun0/ifindex": file("4\n"),
		},
		records: boot.Dir(filepath.Join(t.TempDir(), "state")),
		nm: live.NetworkManager{
			Devices:       []live.Device{{Interface: "eth0", Lease: &lease}, {Interface: "veth9"}},
			Configuration: []map[string]any{{"interface": "eth0", "nameservers": []string{"168.63.129.16"}, "domains": []string{"a.example"}}},
		},
		resolved: map[int]live.Resolved{2: servers(azureDNS)},
	}
	m.write(t, ready())
	return m
}

func (m *machine) write(t *testing.T, rec boot.CheckIn) {
	t.Helper()
	if err := m.records.WriteCheckIn(rec); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) link(t *testing.T, index int, rec boot.Link) {
	t.Helper()
	rec.BootID = bootID
	if err := m.records.WriteLink(index, rec); err != nil {
		t.Fatal(err)
	}
}

func TestStatus(t *testing.T) {
	tests := []struct {
		name   string // of the golden files
		change func(*testing.T, *machine)
		ready  bool
	}{
		{"ready", func(*testing.T, *machine) {}, true},
		{"pushed", func(t *testing.T, m *machine) {
			m.link(t, 2, boot.Link{Interface: "eth0", State: boot.Pushed, Nameservers: []netip.Addr{azureDNS}})
		}, true},
		{"left", func(t *testing.T, m *machine) {
			r := servers(other)
			r.State.Domains = []resolv.Domain{{Name: "a.example"}, {Name: "corp.example", RouteOnly: true}}
			m.resolved[2] = r
			m.link(t, 2, boot.Link{Interface: "eth0", State: boot.Left, Reason: "somebody else gave the link nameservers"})
		}, true},
		{"none", func(_ *testing.T, m *machine) {
			m.files["proc/cmdline"] = file("quiet")
			m.files["sys/class/dmi/id/chassis_asset_tag"] = file("7783-7084-3265-9085-8269-3286-77\n")
			m.files["proc/sys/kernel/random/boot_id"] = file("b0070002-0000-4000-8000-000000000002\n")
			m.resolved[2] = servers()
			m.nm.Devices[0].Lease.Nameservers = nil
			m.nm.Configuration = nil
		}, false},
		{"trying", func(t *testing.T, m *machine) {
			rec := ready()
			rec.State, rec.Attempts, rec.Interface, rec.Source = boot.Trying, 17, "", boot.FromConstant
			rec.LastError = "wire: GET http://168.63.129.16/machine/?comp=goalstate: dial tcp 168.63.129.16:80: connect: no route to host"
			m.write(t, rec)
		}, false},
		{"failed", func(t *testing.T, m *machine) {
			rec := ready()
			rec.State, rec.Source = boot.Failed, boot.FromOperator
			m.write(t, rec)
		}, false},
		{"two-interfaces", func(_ *testing.T, m *machine) {
			m.nm.Devices = append(m.nm.Devices, live.Device{Interface: "eth1", Lease: &nm.Lease{Nameservers: []netip.Addr{other}}})
			m.nm.Configuration = append(m.nm.Configuration, map[string]any{"interface": "eth1", "nameservers": []string{"dns+tls://203.0.113.1#name"}})
			m.files["proc/net/route"] = file("tun0\t00000000\t00000000\t0001\t0\t0\t50\t00000000\t0\t0\t0\neth0\t00000000\t01004D0A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n")
			m.resolved[3], m.resolved[4] = servers(other), servers(other)
		}, true},
		{"unreadable", func(t *testing.T, m *machine) {
			m.records = boot.Dir(filepath.Join(t.TempDir(), "state"))
			if err := os.MkdirAll(filepath.Join(string(m.records), "check-in.json"), 0o755); err != nil {
				t.Fatal(err)
			}
			m.nmErr = errors.New("NetworkManager does not answer: no answer within 3s")
			m.resolvedErr = live.ErrNotRunning
		}, false},
		{"not-azure", func(_ *testing.T, m *machine) { m.files["proc/cmdline"] = file("ignition.platform.id=qemu") }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := healthy(t)
			tt.change(t, m)
			s := status.Read(t.Context(), status.Env{
				Root: m.files, Records: m.records,
				NetworkManager: func(context.Context) (live.NetworkManager, error) {
					if m.nmErr != nil {
						return live.NetworkManager{}, m.nmErr
					}
					return m.nm, nil
				},
				Resolved: func(_ context.Context, index int) (live.Resolved, error) { return m.resolved[index], m.resolvedErr },
			})
			if s.Ready() != tt.ready {
				t.Errorf("ready: %v, want %v", s.Ready(), tt.ready)
			}
			for i, n := range s.NotRead {
				s.NotRead[i].Why = strings.ReplaceAll(n.Why, string(m.records), "/run/nm-azure-dispatch")
			}
			var text, colour bytes.Buffer
			if err := errors.Join(s.Print(&text, false), s.Print(&colour, true)); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name+".txt", text.String())
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
			golden(t, tt.name+".json", string(b)+"\n")
			schematest.Check(t, "../../../docs/schema/status.json", s)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
