package nm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

func TestParseEvent(t *testing.T) {
	tests := []struct {
		name     string
		args     []string
		env      []string
		want     nm.Event
		concerns bool
		err      string
	}{
		{name: "up with a lease", args: []string{"eth0", "up"}, env: []string{"DHCP4_IP_ADDRESS=10.0.0.4"}, want: nm.Event{Interface: "eth0", Action: nm.Up, DHCP4: true}, concerns: true},
		{name: "up, IPv6 was faster", args: []string{"eth0", "up"}, env: []string{"IP6_NUM_ADDRESSES=1"}, want: nm.Event{Interface: "eth0", Action: nm.Up}, concerns: true},
		{name: "first lease", args: []string{"eth0", "dhcp4-change"}, env: []string{"CONNECTION_ID=eth0"}, want: nm.Event{Interface: "eth0", Action: nm.DHCP4Change}, concerns: true},
		{name: "external", args: []string{"docker0", "up"}, env: []string{"CONNECTION_EXTERNAL=1"}, want: nm.Event{Interface: "docker0", Action: nm.Up, External: true}, concerns: true},
		{name: "external that is not 1", args: []string{"eth0", "up"}, env: []string{"CONNECTION_EXTERNAL=0"}, want: nm.Event{Interface: "eth0", Action: nm.Up}, concerns: true},
		{name: "reapply", args: []string{"eth0", "reapply"}, want: nm.Event{Interface: "eth0", Action: nm.Reapply}, concerns: true},
		{name: "down", args: []string{"eth0", "down"}, want: nm.Event{Interface: "eth0", Action: nm.Down}, concerns: true},
		{name: "hostname", args: []string{"none", "hostname"}, want: nm.Event{Interface: "none", Action: "hostname"}},
		{name: "connectivity-change", args: []string{"", "connectivity-change"}, want: nm.Event{Action: "connectivity-change"}},
		{name: "an action of the future", args: []string{"eth0", "defrost"}, want: nm.Event{Interface: "eth0", Action: "defrost"}},
		{name: "longest name", args: []string{"abcdefghijklmno", "up"}, want: nm.Event{Interface: "abcdefghijklmno", Action: nm.Up}, concerns: true},

		{name: "no argument", err: "nm: event: 0 arguments, want 2: INTERFACE ACTION"},
		{name: "three", args: []string{"eth0", "up", "x"}, err: "nm: event: 3 arguments, want 2: INTERFACE ACTION"},
		{name: "no action", args: []string{"eth0", ""}, err: "nm: event: the action is empty, want one of NetworkManager-dispatcher(8)"},
		{name: "no interface", args: []string{"", "up"}, err: `nm: "" is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link`},
		{name: "too long", args: []string{"abcdefghijklmnop", "up"}, err: `nm: "abcdefghijklmnop" is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link`},
		{name: "path", args: []string{"../../etc", "up"}, err: `nm: "../../etc" is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link`},
		{name: "parent", args: []string{"..", "down"}, err: `nm: ".." is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := nm.ParseEvent(tt.args, tt.env)
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
		ev, err := nm.ParseEvent([]string{"eth0", a}, []string{"DHCP4_X=y"})
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
		ev, err := nm.ParseEvent([]string{iface, action}, []string{env})
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
