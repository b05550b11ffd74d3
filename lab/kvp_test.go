package lab_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

const (
	pool       = "/var/lib/hyperv/.kvp_pool_1"
	kvpRecord  = 512 + 2048
	kvpSuccess = "result=success|agent=nm-azure-dispatch/"
)

// The host finds one record at any time: an error while nothing gets through,
// and success once it does, by the hook or by the unit.
func TestKVP(t *testing.T) {
	t.Parallel()
	onSomeSuites(t, func(t *testing.T, suite string) {
		cfg := quiet()
		cfg.Systemd = true
		cfg.Files = map[string]string{pool: ""}
		cfg.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
		l := startProduct(t, suite, cfg)
		l.Cloud.CloseWire()
		ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
		up(t, l, "eth0")
		eventually(t, l, "the host sees why", hostSees(l, "result=error|", "connection refused"))
		ok(t, l.Cloud.PlayWire(lab.WireScript{}))
		eventually(t, l, "the host sees success", hostSees(l, kvpSuccess, "|boot_id="))
		eventually(t, l, "checked in", prints(l, `"state": "ready"`, "cat", "/run/nm-azure-dispatch/check-in.json"))
		run(t, l, "nmcli", "device", "reapply", "eth0")
		times(t, l, 1, "reapply", "eth0")
		ok(t, hostSees(l, kvpSuccess)(t.Context()))
	})
}

// hostSees reports whether the pool has one record, with all of the words in it.
func hostSees(l *lab.Lab, words ...string) func(context.Context) error {
	return func(context.Context) error {
		text, err := l.Guest.ReadFile(pool)
		if err != nil {
			return err
		}
		if len(text) != kvpRecord || !strings.HasPrefix(text, "PROVISIONING_REPORT\x00") {
			return fmt.Errorf("%d bytes: %q", len(text), text)
		}
		for _, w := range words {
			if !strings.Contains(text, w) {
				return fmt.Errorf("no %q in %q", w, text[512:])
			}
		}
		return nil
	}
}

// While the WireServer refuses connections the host never finds success: it is in the pool only from a POST on.
func TestKVPIsTrue(t *testing.T) {
	c := networkdGuest(dhcpNetwork)
	c.Files[pool] = ""
	l := startProduct(t, lab.Suites[0], c)
	l.Cloud.CloseWire()
	startNetworkd(t, l)
	eventually(t, l, "the host sees why", hostSees(l, "result=error|", "connection refused"))
	for range 50 {
		if err := hostSees(l, "result=error|", "connection refused")(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	ok(t, l.Cloud.PlayWire(lab.WireScript{}))
	eventually(t, l, "the host sees success", hostSees(l, kvpSuccess))
}
