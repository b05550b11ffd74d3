package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// timing is how long an accepted Ready took, after the DHCP server's ACK and after the kernel had a default route.
type timing struct{ ack, route time.Duration }

// timingRounds is how often each way is timed.
func timingRounds() int {
	if everything() {
		return 9
	}
	return 1
}

// How soon Ready follows the network, with either manager. Prints the times: they depend on the machine.
func TestReadyTime(t *testing.T) {
	for _, suite := range lab.Suites {
		ways := map[string]lab.Config{
			"systemd-networkd": networkdGuest(dhcpNetwork),
			"NetworkManager": with(quiet(), func(c *lab.Config) {
				c.Systemd = true
				c.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
			}),
		}
		for way, c := range ways {
			t.Run(suite+"/"+way, func(t *testing.T) {
				l := startProduct(t, suite, c)
				d := map[string]lab.Daemon{"systemd-networkd": networkd, "NetworkManager": lab.NetworkManager}[way]
				var acks, routes []time.Duration
				for range timingRounds() {
					got := timeReady(t, l, d)
					acks, routes = append(acks, got.ack), append(routes, got.route)
				}
				t.Logf("%s, %s, %d rounds: Ready %s after the route, %s after the ACK", suite, way, len(acks), spread(routes), spread(acks))
			})
		}
	}
}

func spread(d []time.Duration) string {
	slices.Sort(d)
	return fmt.Sprintf("%.1f ms (%.1f to %.1f)", d[len(d)/2].Seconds()*1e3, d[0].Seconds()*1e3, d[len(d)-1].Seconds()*1e3)
}

// timeReady lets the daemon configure eth0 as for the first time in this boot.
func timeReady(t *testing.T, l *lab.Lab, d lab.Daemon) timing {
	t.Helper()
	run(t, l, "sh", "-c", "systemctl stop "+unit+" systemd-networkd.socket "+string(d)+" 2>/dev/null; systemctl reset-failed; pkill -x ip;"+
		"rm -rf "+stateDir+"/* /var/lib/NetworkManager/*.lease /run/systemd/netif/leases/*; ip addr flush dev eth0; ip route flush table main;"+
		"ip -ts monitor route </dev/null >/run/routes 2>&1 &")
	before := len(requests(t, l))
	ok(t, l.Guest.Start(t.Context(), d))
	becomesReady(t, l)
	var route time.Time
	eventually(t, l, "the route was seen", func(context.Context) error {
		text, err := l.Guest.ReadFile("/run/routes")
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			stamp, what, _ := strings.Cut(strings.TrimPrefix(line, "["), "] ")
			if strings.HasPrefix(what, "default via") {
				route, err = time.Parse("2006-01-02T15:04:05.000000", stamp)
				return err
			}
		}
		return fmt.Errorf("no default route in %q", text)
	})
	log := l.Cloud.Requests()
	ready := time.Unix(0, log[len(log)-1].UnixNano)
	if len(log)-before != len(once) {
		t.Errorf("%d requests, want %d", len(log)-before, len(once))
	}
	messages := l.Cloud.DHCPLog()
	var ack time.Time
	for _, m := range messages {
		if m.Type == "ACK" {
			ack = m.Time
		}
	}
	return timing{ack: ready.Sub(ack), route: ready.Sub(route)}
}
