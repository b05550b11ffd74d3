package machine_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/netlink"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// envInside marks the test process that runs in namespaces of its own.
const envInside = "NM_AZURE_TEST_INSIDE"

// The queries over the network, in a network of their own with a WireServer. The route is
// the one for the address that the kernel sends from, and a request that is slow is put in
// small segments too.
func TestNetwork(t *testing.T) {
	if os.Getenv(envInside) == "" {
		if os.Geteuid() != 0 {
			if os.Getenv("CI") != "" {
				t.Fatal("CI must run this as root")
			}
			t.Skip("only root can make namespaces")
		}
		cmd := namespace.Command(t.Context(), os.Args[0], "-test.run=^TestNetwork$", "-test.v")
		cmd.Env = append(cmd.Env, envInside+"=1", "TMPDIR="+os.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS: TestNetwork")) {
			t.Fatalf("inside: %v\n%s", err, out)
		}
		return
	}
	err := errors.Join(namespace.SetUp("ignition.platform.id=azure"), namespace.IP(
		"link set lo up", "addr add 168.63.129.16/32 dev lo", "route add local 168.63.129.16 dev lo table 100",
		"rule add pref 9 from 168.63.129.16 lookup 100", "rule add pref 20 lookup local", "rule del pref 0",
	))
	if err != nil {
		t.Fatal(err)
	}
	noBus, root := errors.New("no bus"), files()
	root["sys/class/net/lo/ifindex"] = file("1\n")
	read := func() machine.Probes {
		return machine.Read(t.Context(), machine.Options{
			Root: root, Records: t.TempDir(), Network: true,
			Connect: func(_, _ context.Context) (*dbus.Conn, error) { return nil, noBus },
		}).Probes
	}
	for delay, small := range map[time.Duration]error{0: machine.ErrNotAsked, time.Second: nil} {
		ctx, stop := context.WithCancel(t.Context())
		l, err := net.Listen("tcp", "168.63.129.16:80")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			done <- wiretest.New(wiretest.Script{GoalState: []wiretest.Step{{Times: -1, Delay: delay}}}).Serve(ctx, l)
		}()
		p := read()
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if p.Unreached() != nil || p.GoalState.Err != nil || p.GoalState.V.Incarnation == "" || !errors.Is(p.Small.Err, small) {
			t.Errorf("after %v: connection %v, goal state %+v, in small segments: %v, want %v", delay, p.Unreached(), p.GoalState, p.Small.Err, small)
		}
		stub := netip.MustParseAddr("127.0.0.53")
		if len(p.File.V) != 1 || p.File.V[0].Server != stub || p.File.V[0].Err == nil || !errors.Is(p.LookUp.Err, noBus) {
			t.Errorf("resolv.conf: %+v, lookup: %v", p.File, p.LookUp.Err)
		}
	}
	p := read()
	if !errors.Is(p.Unreached(), syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", p.Unreached())
	}
	want := machine.Seen[machine.Route]{V: machine.Route{
		Route: netlink.Route{Index: 1, Source: netip.MustParseAddr("168.63.129.16"), Table: 100}, Interface: "lo",
	}}
	if diff := cmp.Diff(want, p.Route, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("route (-want +got):\n%s", diff)
	}
}
