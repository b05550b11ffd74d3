package link_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
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

func TestSlave(t *testing.T) {
	flags := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	root := fstest.MapFS{
		"sys/class/net/eth0/ifindex":      {Data: []byte("2\n")},
		"sys/class/net/eth1/master":       {Mode: fs.ModeDir},
		"sys/class/net/eth2/master/flags": flags("0x1403\n"), // a bond
		"sys/class/net/eth3/master/flags": flags("0x1003\n"), // a bridge, or netvsc
		"sys/class/net/eth4/master/flags": flags("0x4c1\n"),  // a VRF
	}
	for iface, want := range map[string]bool{"eth0": false, "gone": false, "eth1": true, "eth2": true, "eth3": true, "eth4": false} {
		if got := link.Slave(root, iface); got != want {
			t.Errorf("%s: slave %v, want %v", iface, got, want)
		}
	}
}

func TestDefaultRoutes(t *testing.T) {
	const header = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	tests := []struct {
		name, table string
		want        []string
	}{
		{name: "no table"},
		{name: "header only", table: header},
		{name: "one", table: header +
			"eth0\t00000000\t01004D0A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n" +
			"eth0\t10813FA8\t01004D0A\t0007\t0\t0\t100\tFFFFFFFF\t0\t0\t0\n", want: []string{"eth0"}},
		{name: "the lower metric goes first", table: header +
			"eth1\t00000000\t01004D0A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n" +
			"eth0\t00000000\t01004D0A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n" +
			"eth2\t00000000\t01004D0A\t0003\t0\t0\t150\t00000000\t0\t0\t0\n", want: []string{"eth0", "eth2", "eth1"}},
		{name: "half of everything, unreachable, and down are none", table: header +
			"tun0\t00000000\t00000000\t0003\t0\t0\t0\t00000080\t0\t0\t0\n" +
			"*\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0\n" +
			"eth0\t00000000\t00000000\t0002\t0\t0\t0\t00000000\t0\t0\t0\n" +
			"eth0\t00000000\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{}
			if tt.table != "" {
				root["proc/net/route"] = &fstest.MapFile{Data: []byte(tt.table)}
			}
			if diff := cmp.Diff(tt.want, link.DefaultRoutes(root)); diff != "" {
				t.Errorf("interfaces (-want +got):\n%s", diff)
			}
		})
	}
}
