package lab_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

const name = "wire.lab.internal.cloudapp.net"

func TestResolvedGetsNameservers(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		l := start(t, lab.Config{Suite: suite})
		eventually(t, l, "resolved has the lease's nameservers", prints(l, "168.63.129.16 10.77.0.1", "resolvectl", "dns", "eth0"))
		l.Cloud.SetName(name, lab.Constant)
		eventually(t, l, "a name resolves", prints(l, lab.Constant, "getent", "ahostsv4", "wire"))
	})
}

func TestResolvedGetsNothing(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		l := start(t, lab.Config{Suite: suite, DNS: "none", ToResolved: "false"})
		eventually(t, l, "the interface is up", happened(l, "up", "eth0"))
		if got := run(t, l, "resolvectl", "dns", "eth0"); strings.Contains(got, ".") {
			t.Errorf("nameservers of eth0: %s", got)
		}
	})
}

func TestNameserverFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault lab.DNSFault
		want  []string // who of the two was asked how
	}{
		{lab.DNSSilent, []string{"168.63.129.16 udp", "10.77.0.1 udp"}},
		{lab.DNSRefuse, []string{"168.63.129.16 udp", "10.77.0.1 udp"}},
		{lab.DNSTruncate, []string{"168.63.129.16 udp", "168.63.129.16 tcp"}},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault), func(t *testing.T) {
			t.Parallel()
			l := start(t, lab.Config{})
			connected(t, l, "eth0")
			l.Cloud.SetName(name, lab.Constant)
			l.Cloud.SetDNSFault(lab.Constant, tt.fault)
			eventually(t, l, "a name resolves", prints(l, lab.Constant, "resolvectl", "query", "-4", name))
			queries := l.Cloud.Queries()
			var asked []string
			for _, q := range queries {
				if who := q.Server.String() + " " + q.Proto; q.Name == name && !slices.Contains(asked, who) {
					asked = append(asked, who)
				}
			}
			if d := cmp.Diff(tt.want, asked); d != "" {
				t.Errorf("queries (-want +got):\n%s", d)
			}
		})
	}
}
