package lab_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// value is an option of the lease, as NetworkManager has it on the bus.
func value(t *testing.T, l *lab.Lab, nic, option string) string {
	t.Helper()
	return run(t, l, "sh", "-c", `nmcli -t -f DHCP4 device show "$1" | sed -n "s/^DHCP4.OPTION\[[0-9]*\]:$2 = //p"`, "-", nic, option)
}

func TestLease(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		l := start(t, lab.Config{Suite: suite})
		eventually(t, l, "the interface is up", happened(l, "up", "eth0"))
		got := map[string]string{}
		for _, option := range []string{"private_245", "domain_name_servers", "domain_name", "dhcp_lease_time"} {
			got[option] = value(t, l, "eth0", option)
		}
		want := map[string]string{
			"private_245": "a8:3f:81:10", "domain_name_servers": "168.63.129.16 10.77.0.1",
			"domain_name": "lab.internal.cloudapp.net", "dhcp_lease_time": "4294967295",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("lease (-want +got):\n%s", d)
		}
		events, err := l.Guest.Events()
		ok(t, err)
		if d := cmp.Diff([]string{"dhcp4-change", "pre-up", "up"}, actions(events, "eth0")); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
	})
}

func TestOption245(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lease lab.Lease
		want  string
	}{
		{"doubled", lab.AzureLease().With(lab.OptWireServer, []byte{168, 63, 129, 16}, []byte{10, 77, 1, 16}), "a8:3f:81:10:0a:4d:01:10"},
		{"short", lab.AzureLease().With(lab.OptWireServer, []byte{168, 63}), "a8:3f"},
		{"longer than an option", lab.AzureLease().With(lab.OptWireServer, make([]byte, 256)), string(make0s(256))},
		{"empty", lab.AzureLease().With(lab.OptWireServer, nil), ""},
		{"absent", lab.AzureLease().Without(lab.OptWireServer), ""},
		{"another address", lab.AzureLease().WithAddrs(lab.OptWireServer, lab.Other), "0a:4d:01:10"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := start(t, lab.Config{Lease: &tt.lease})
			connected(t, l, "eth0")
			if got := value(t, l, "eth0", "private_245"); got != tt.want {
				t.Errorf("option 245 is %q, want %q", got, tt.want)
			}
		})
	}
}

func make0s(n int) []byte {
	b := []byte("00")
	for range n - 1 {
		b = append(b, ":00"...)
	}
	return b
}

// IPv6 is ready before a slow DHCP server answers: the interface is up without a lease.
func TestSlowLease(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		lease := lab.AzureLease()
		lease.Delay = 2 * time.Second
		l := start(t, with(lab.Config{Suite: suite, Lease: &lease}, mayFail))
		eventually(t, l, "a lease comes", happened(l, "dhcp4-change", "eth0"))
		events, err := l.Guest.Events()
		ok(t, err)
		if d := cmp.Diff([]string{"pre-up", "up", "dhcp4-change"}, actions(events, "eth0")); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
	})
}

// NetworkManager 1.42 has no event for a renewal, later ones have one.
func TestRenewal(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		want := []string{"dhcp4-change", "pre-up", "up"}
		if suite != "bookworm" {
			want = append(want, "dhcp4-change")
		}
		lease := lab.AzureLease().WithTimes(8 * time.Second)
		l := start(t, lab.Config{Suite: suite, Lease: &lease})
		eventually(t, l, "the interface is up", happened(l, "up", "eth0"))
		l.Cloud.SetLease("eth0", lab.AzureLease().WithAddrs(lab.OptWireServer, lab.Other))
		eventually(t, l, "the lease is renewed", prints(l, "0a:4d:01:10", "nmcli", "-f", "DHCP4", "device", "show", "eth0"))
		ok(t, l.Guest.Settle(t.Context()))
		events, err := l.Guest.Events()
		ok(t, err)
		if d := cmp.Diff(want, actions(events, "eth0")); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
	})
}

func TestRefusedLease(t *testing.T) {
	t.Parallel()
	lease := lab.AzureLease().WithTimes(8 * time.Second)
	l := start(t, lab.Config{Lease: &lease})
	connected(t, l, "eth0")
	lease = lab.AzureLease().At("10.77.0.55")
	l.Cloud.SetLease("", lease)
	eventually(t, l, "the interface gets another address", prints(l, "10.77.0.55/24", "ip", "addr", "show", "eth0"))
	log := l.Cloud.DHCPLog()
	if !slices.ContainsFunc(log, func(m lab.DHCPMessage) bool { return m.Type == "NAK" && m.MAC == lab.MAC("eth0") }) {
		t.Errorf("there was no NAK: %v", log)
	}
}

func TestTwoNICs(t *testing.T) {
	t.Parallel()
	second := lab.AzureLease().Without(lab.OptWireServer).Without(lab.OptClasslessRoute).Without(lab.OptRouter)
	l := start(t, lab.Config{NICs: []string{"eth0", "eth1"}, Leases: map[string]lab.Lease{"eth1": second}})
	connected(t, l, "eth0")
	connected(t, l, "eth1")
	got := []string{value(t, l, "eth0", "private_245"), value(t, l, "eth1", "private_245")}
	if d := cmp.Diff([]string{"a8:3f:81:10", ""}, got); d != "" {
		t.Errorf("option 245 of either (-want +got):\n%s", d)
	}
}

func TestPlug(t *testing.T) {
	t.Parallel()
	l := start(t, lab.Config{NICs: []string{}, Profiles: []lab.Profile{{ID: "eth1"}}})
	ok(t, l.AddNIC(t.Context(), "eth1"))
	connected(t, l, "eth1")
	ok(t, l.SetCarrier(t.Context(), "eth1", false))
	eventually(t, l, "the carrier is lost", happened(l, "down", "eth1"))
	ok(t, l.SetCarrier(t.Context(), "eth1", true))
	connected(t, l, "eth1")
	ok(t, l.RemoveNIC(t.Context(), "eth1"))
	eventually(t, l, "the interface is gone", prints(l, "", "sh", "-c", "! ip link show eth1 2>/dev/null"))
}
