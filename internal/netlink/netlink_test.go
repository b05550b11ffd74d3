package netlink_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/netlink"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
)

var server = netip.MustParseAddr("168.63.129.16")

// network moves the test's thread into a new network namespace, which has eth0
// (index 200, 10.0.0.4/24), up.
func network(t *testing.T) {
	t.Helper()
	namespace.Thread(t, "link set lo up", "link add eth0 index 200 type veth peer name peer", "link set peer up", "link set eth0 up",
		"address add 10.0.0.4/24 dev eth0")
}

func ip(t *testing.T, commands ...string) {
	t.Helper()
	if err := namespace.IP(commands...); err != nil {
		t.Fatal(err)
	}
}

// The kernel's answers, for each kind of route that stands between a machine and
// the WireServer.
func TestLookup(t *testing.T) {
	network(t)
	gateway, source := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.4")
	tests := []struct {
		name, commands string
		src            netip.Addr
		want           netlink.Route
		wantErr        error
	}{
		{name: "none", wantErr: unix.ENETUNREACH},
		{name: "unreachable", commands: "route add unreachable default metric 9", wantErr: unix.EHOSTUNREACH},
		{name: "default", commands: "route add default via 10.0.0.1", want: netlink.Route{Index: 200, Gateway: gateway, Source: source, Table: 254}},
		{name: "a source", src: source, want: netlink.Route{Index: 200, Gateway: gateway, Table: 254}},
		{name: "on the link", commands: "route add 168.63.129.16 dev eth0", want: netlink.Route{Index: 200, Source: source, Table: 254}},
		{name: "a table of its own", commands: "rule add from 10.0.0.4 lookup 300;route add blackhole default table 300", src: source, wantErr: unix.EINVAL},
		{name: "the rule is for that source", want: netlink.Route{Index: 200, Source: source, Table: 254}},
		{name: "prohibit", commands: "rule add to 168.63.129.16 prohibit priority 1", wantErr: unix.EACCES},
		{name: "this machine", commands: "rule del priority 1;address add 168.63.129.16/32 dev lo", want: netlink.Route{Index: 1, Source: server, Table: 255}},
	}
	for _, tt := range tests { // no subtests: they run on other threads
		for command := range strings.SplitSeq(tt.commands, ";") {
			if command != "" {
				ip(t, command)
			}
		}
		got, err := netlink.Lookup(server, tt.src)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" || !errors.Is(err, tt.wantErr) {
			t.Errorf("%s: error %v, want %v; (-want +got):\n%s", tt.name, err, tt.wantErr, diff)
		}
	}
}

// A route that is there, one that comes after the first look, and none.
func TestWaitRoute(t *testing.T) {
	network(t)
	routed := func() bool {
		_, err := netlink.Lookup(server, netip.Addr{})
		return err == nil
	}
	netlink.WaitRoute(t.Context(), server, nil) // changes cannot be watched: nothing to wait for
	changes, err := netlink.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	netlink.WaitRoute(short, server, changes)
	if short.Err() == nil || routed() {
		t.Error("returned before its context ended, without a route")
	}
	later := exec.Command("sh", "-c", "sleep 0.1; ip route add default via 10.0.0.1")
	if err := later.Start(); err != nil { // from this thread: in this namespace
		t.Fatal(err)
	}
	netlink.WaitRoute(t.Context(), server, changes)
	if !routed() {
		t.Error("returned without a route")
	}
	if err := later.Wait(); err != nil {
		t.Error(err)
	}
	netlink.WaitRoute(t.Context(), server, changes) // it is there: nothing to wait for
}

// readAll waits until nothing is left to be read from any netlink socket of this namespace.
func readAll(t *testing.T) {
	t.Helper()
	for left := true; left; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile("/proc/thread-self/net/netlink")
		if err != nil {
			t.Fatal(err)
		}
		left = false
		for line := range strings.Lines(string(text)) {
			const rmem = 4 // the column
			if f := strings.Fields(line); f[rmem] != "Rmem" && f[rmem] != "0" {
				left = true
			}
		}
	}
}

// More changes than the socket's buffer holds are a change too.
func TestLostMessages(t *testing.T) {
	network(t)
	changes, err := netlink.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var batch strings.Builder
	for i := range 4000 {
		batch.WriteString("route add 172.16." + strconv.Itoa(i/250) + "." + strconv.Itoa(i%250) + " dev eth0\n")
	}
	load := exec.Command("ip", "-batch", "-")
	load.Stdin = strings.NewReader(batch.String())
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	readAll(t)
	received := 0
	for quiet := false; !quiet; {
		select {
		case <-changes:
			received++
		case <-time.After(time.Second):
			quiet = true
		}
	}
	if received == 0 || received > 2 { // one that waited, and one that the reader had received
		t.Errorf("%d changes, want one or two for all that came together", received)
	}
	ip(t, "route add 172.17.0.1 dev eth0")
	select {
	case <-changes:
	case <-time.After(10 * time.Second):
		t.Error("deaf after lost messages")
	}
}
