package wire_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// An address from DHCP must pass CheckAddr; an operator's only what Report
// refuses.
func TestCheckAddr(t *testing.T) {
	const good = ""
	tests := []struct{ addr, dhcp, operator string }{
		{"168.63.129.16", good, good},
		{"10.0.0.4", good, good},
		{"100.115.176.3", good, good}, // a classic deployment's (larsks/azure-tools)
		{"1.0.0.0", good, good},
		{"223.255.255.255", good, good},
		{"127.0.0.1", "loopback", good},
		{"127.255.255.255", "loopback", good},
		{"169.254.0.0", "link-local", good},
		{"169.254.169.254", "link-local", good},
		{"0.0.0.0", "unspecified (0.0.0.0/8)", "unspecified (0.0.0.0/8)"},
		{"0.0.67.33", "unspecified (0.0.0.0/8)", "unspecified (0.0.0.0/8)"}, // "4:3:2:1", misread
		{"224.0.0.1", "multicast", "multicast"},
		{"239.255.255.255", "multicast", "multicast"},
		{"240.0.0.0", "reserved (240.0.0.0/4)", "reserved (240.0.0.0/4)"},
		{"255.255.255.254", "reserved (240.0.0.0/4)", "reserved (240.0.0.0/4)"},
		{"255.255.255.255", "broadcast", "broadcast"},
		{"fd00::1", "not IPv4", "not IPv4"},
		{"::", "not IPv4", "not IPv4"},
		{"::ffff:168.63.129.16", "not IPv4", "not IPv4"},
	}
	for _, tt := range tests {
		t.Run(tt.addr, func(t *testing.T) {
			a := netip.MustParseAddr(tt.addr)
			if diff := cmp.Diff(addrError(tt.addr, tt.dhcp), text(wire.CheckAddr(a))); diff != "" {
				t.Errorf("CheckAddr (-want +got):\n%s", diff)
			}
			if tt.operator == good {
				return // see TestReport: it is on loopback
			}
			r := &wire.Reporter{Server: a}
			_, err := r.Report(t.Context(), wire.Ready())
			if diff := cmp.Diff(addrError(tt.addr, tt.operator), text(err)); diff != "" {
				t.Errorf("Report (-want +got):\n%s", diff)
			}
			_, err = r.FetchGoalState(t.Context())
			if diff := cmp.Diff(addrError(tt.addr, tt.operator), text(err)); diff != "" {
				t.Errorf("FetchGoalState (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	const want = "wire: no server address"
	if diff := cmp.Diff(want, text(wire.CheckAddr(netip.Addr{}))); diff != "" {
		t.Errorf("CheckAddr (-want +got):\n%s", diff)
	}
	_, err := new(wire.Reporter).Report(t.Context(), wire.Ready())
	if diff := cmp.Diff(want, text(err)); diff != "" {
		t.Errorf("Report (-want +got):\n%s", diff)
	}
}

func addrError(addr, reason string) string {
	if reason == "" {
		return ""
	}
	return "wire: server address " + addr + ": " + reason
}

// text is err's text, "" for nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
