package nm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

func TestParseEvent(t *testing.T) {
	tests := []struct {
		name, iface, action string

		env      []string
		want     nm.Event
		concerns bool
		err      string
	}{
		{name: "up with a lease", iface: "eth0", action: "up", env: []string{"DHCP4_IP_ADDRESS=10.0.0.4"}, want: nm.Event{Interface: "eth0", Action: nm.Up, DHCP4: true}, concerns: true},
		{name: "up, IPv6 was faster", iface: "eth0", action: "up", env: []string{"IP6_NUM_ADDRESSES=1"}, want: nm.Event{Interface: "eth0", Action: nm.Up}, concerns: true},
		{name: "first lease", iface: "eth0", action: "dhcp4-change", env: []string{"CONNECTION_ID=eth0"}, want: nm.Event{Interface: "eth0", Action: nm.DHCP4Change}, concerns: true},
		{name: "external", iface: "docker0", action: "up", env: []string{"CONNECTION_EXTERNAL=1"}, want: nm.Event{Interface: "docker0", Action: nm.Up, External: true}, concerns: true},
		{name: "external that is not 1", iface: "eth0", action: "up", env: []string{"CONNECTION_EXTERNAL=0"}, want: nm.Event{Interface: "eth0", Action: nm.Up}, concerns: true},
		{name: "reapply", iface: "eth0", action: "reapply", want: nm.Event{Interface: "eth0", Action: nm.Reapply}, concerns: true},
		{name: "down", iface: "eth0", action: "down", want: nm.Event{Interface: "eth0", Action: nm.Down}, concerns: true},
		{name: "hostname", iface: "none", action: "hostname", want: nm.Event{Interface: "none", Action: "hostname"}},
		{name: "connectivity-change", iface: "", action: "connectivity-change", want: nm.Event{Action: "connectivity-change"}},
		{name: "an action of the future", iface: "eth0", action: "defrost", want: nm.Event{Interface: "eth0", Action: "defrost"}},
		{name: "longest name", iface: "abcdefghijklmno", action: "up", want: nm.Event{Interface: "abcdefghijklmno", Action: nm.Up}, concerns: true},

		{name: "no action", iface: "eth0", action: "", err: "nm: event: the action is empty, want one of NetworkManager-dispatcher(8)"},
		{name: "no interface", iface: "", action: "up", err: `nm: "" is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link`},
		{name: "too long", iface: "abcdefghijklmnop", action: "up", err: `nm: "abcdefghijklmnop" is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link`},
		{name: "path", iface: "../../etc", action: "up", err: `nm: "../../etc" is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link`},
		{name: "parent", iface: "..", action: "down", err: `nm: ".." is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := nm.ParseEvent(tt.iface, tt.action, tt.env)
			if errText(err) != tt.err {
				t.Fatalf("error %q, want %q", errText(err), tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if got.Concerns() != tt.concerns {
				t.Errorf("Concerns() = %v, want %v", got.Concerns(), tt.concerns)
			}
		})
	}
}

// Every action of NetworkManager-dispatcher(8) but four is none of our business.
func TestActionsOfOthers(t *testing.T) {
	for a := range strings.FieldsSeq("pre-up pre-down vpn-pre-up vpn-up vpn-pre-down vpn-down hostname dhcp6-change connectivity-change dns-change device-add device-delete") {
		ev, err := nm.ParseEvent("eth0", a, []string{"DHCP4_X=y"})
		if err != nil || ev.Concerns() {
			t.Errorf("%s: concerns %v, error %v", a, ev.Concerns(), err)
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add("eth0", "up", "CONNECTION_EXTERNAL=1")
	f.Add("", "connectivity-change", "")
	f.Add("../x", "down", "DHCP4_")
	f.Fuzz(func(t *testing.T, iface, action, env string) {
		ev, err := nm.ParseEvent(iface, action, []string{env})
		if err != nil || !ev.Concerns() {
			return
		}
		if strings.ContainsAny(ev.Interface, "/ \x00\n") || ev.Interface == ".." || ev.Interface == "" {
			t.Errorf("interface %q passed", ev.Interface)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
