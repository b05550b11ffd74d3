package link_test

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
)

func TestIndex(t *testing.T) {
	root := fstest.MapFS{
		"sys/class/net/eth0/ifindex": {Data: []byte("12\n")},
		"sys/class/net/bad/ifindex":  {Data: []byte("x")},
	}
	if n, err := link.Index(root, "eth0"); n != 12 || err != nil {
		t.Errorf("got %d, %v; want 12", n, err)
	}
	for name, want := range map[string]string{
		"bad":  `link: /sys/class/net/bad/ifindex holds "x", want a positive number`,
		"gone": "link: /sys/class/net/gone/ifindex: file does not exist",
	} {
		if n, err := link.Index(root, name); err == nil || err.Error() != want {
			t.Errorf("%s: got %d, %v; want %s", name, n, err, want)
		}
	}
}

func TestExists(t *testing.T) {
	root := fstest.MapFS{
		"sys/class/net/eth0/ifindex":    {Data: []byte("12\n")},
		"sys/class/net/bonding_masters": {},
	}
	if !link.Exists(root, 12) || link.Exists(root, 1) {
		t.Errorf("12 exists: %v, 1 exists: %v; want true and false", link.Exists(root, 12), link.Exists(root, 1))
	}
	if !link.Exists(fstest.MapFS{}, 12) {
		t.Error("without /sys, the interface counts as gone")
	}
}

func TestIsPort(t *testing.T) {
	flags := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	root := fstest.MapFS{
		"sys/class/net/eth0/ifindex":      {Data: []byte("2\n")},
		"sys/class/net/eth1/master":       {Mode: fs.ModeDir},
		"sys/class/net/eth2/master/flags": flags("0x1403\n"), // a bond
		"sys/class/net/eth3/master/flags": flags("0x1003\n"), // a bridge, or netvsc
		"sys/class/net/eth4/master/flags": flags("0x4c1\n"),  // a VRF
	}
	for iface, want := range map[string]bool{"eth0": false, "gone": false, "eth1": true, "eth2": true, "eth3": true, "eth4": false} {
		if got := link.IsPort(root, iface); got != want {
			t.Errorf("%s: port %v, want %v", iface, got, want)
		}
	}
}

func TestDefaultRoutes(t *testing.T) {
	const header = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	const ours = "eth0\t00000000\t01004D0A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
	const host = "eth0\t10813FA8\t01004D0A\t0007\t0\t0\t100\tFFFFFFFF\t0\t0\t0\n"
	for table, want := range map[string][]string{"": nil, header: nil, header + "eth0\t00000000\n": nil, header + ours + host: {"eth0"}} {
		if diff := cmp.Diff(want, link.DefaultRoutes(routes(table))); diff != "" {
			t.Errorf("%q: interfaces (-want +got):\n%s", table, diff)
		}
	}
	if got := link.DefaultRoutes(fstest.MapFS{}); got != nil {
		t.Errorf("no table: interfaces %v", got)
	}
}

func routes(table string) fs.FS {
	return fstest.MapFS{"proc/net/route": {Data: []byte(table)}}
}

// The kernel lists routes by metric, and those that drop packets without an interface.
func TestKernelsDefaultRoutes(t *testing.T) {
	namespace.Thread(t,
		"link add eth0 type veth peer name eth1", "link add eth2 type veth peer name eth3",
		"link set eth0 up", "link set eth1 up", "link set eth2 up", "link set eth3 up",
		"route add default dev eth1 metric 200", "route add default dev eth0 metric 100", "route add default dev eth2 metric 150",
		"route add blackhole default metric 1", "route add unreachable default metric 2", "route add prohibit default metric 3",
		"route add 0.0.0.0/1 dev eth3", "route add 128.0.0.0/1 dev eth3", "route add default dev eth3 table 300",
	)
	table, err := os.ReadFile("/proc/thread-self/net/route")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"eth0", "eth2", "eth1"}, link.DefaultRoutes(routes(string(table)))); diff != "" {
		t.Errorf("interfaces (-want +got):\n%s", diff)
	}
}
