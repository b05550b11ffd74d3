package networkd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

var compare = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmpopts.EquateEmpty(), cmpopts.EquateErrors(),
	cmpopts.SortSlices(func(a, b netip.Prefix) bool { return a.String() < b.String() }),
}

func addrs(s string) (out []netip.Addr) {
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParseAddr(f))
	}
	return out
}

func prefixes(s string) (out []netip.Prefix) {
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParsePrefix(f))
	}
	return out
}

// manager makes Manager.Describe's answer from those of DescribeLink.
func manager(links ...string) []byte {
	return []byte(`{"Interfaces":[` + strings.Join(links, ",") + `]}`)
}

func parse(t *testing.T, links ...string) []networkd.Link {
	t.Helper()
	got, err := networkd.Parse(manager(links...))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The goldens are what DescribeLink of the real daemon returned.
func TestParse(t *testing.T) {
	for suite, wantErr := range map[string]error{"bookworm": networkd.ErrOption245Unknown, "trixie": nil, "forky": nil} {
		t.Run(suite, func(t *testing.T) {
			golden, err := os.ReadFile(filepath.Join("testdata", suite+"-describelink.json"))
			if err != nil {
				t.Fatal(err)
			}
			want := networkd.Link{
				Name: "eth0", Index: 2, OperState: "routable", AdminState: "configured",
				Managed: true, DHCP: true, Nameservers: addrs("168.63.129.16 10.77.0.1"),
				Lease: &nm.Lease{
					Address: netip.MustParseAddr("10.77.0.153"), Nameservers: addrs("168.63.129.16 10.77.0.1"), Routers: addrs("10.77.0.1"),
					Routes:        prefixes("0.0.0.0/0 168.63.129.16/32 169.254.169.254/32"),
					WireServerErr: wantErr,
				},
			}
			if wantErr == nil {
				want.Lease.WireServer = netip.MustParseAddr("168.63.129.16")
			}
			got := parse(t, string(golden))
			if diff := cmp.Diff([]networkd.Link{want}, got, compare); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !got[0].Lease.Primary() {
				t.Error("the lease is not primary")
			}
		})
	}
}

func TestOption245(t *testing.T) {
	lease := func(client string) string {
		return `{"Index":2,"Name":"eth0","Addresses":[{"Address":[10,0,0,4],"ConfigSource":"DHCPv4"}]` + client + `}`
	}
	tests := []struct {
		name, client string
		want         netip.Addr
		wantErr      string // "" for none
		noLease      bool
	}{
		{name: "before 256", wantErr: networkd.ErrOption245Unknown.Error()},
		{name: "no lease yet", client: `,"DHCPv4Client":{"ClientIdentifier":[1,2]}`, noLease: true},
		{name: "absent", client: `,"DHCPv4Client":{"Lease":{}}`},
		{name: "absent among others", client: `,"DHCPv4Client":{"PrivateOptions":[{"Option":249,"PrivateOptionData":"00"}]}`},
		{name: "empty", client: private(""), wantErr: `option 245: "" is 0 bytes long, want 4`},
		{name: "short", client: private("a83f"), wantErr: `option 245: "a83f" is 2 bytes long, want 4`},
		{name: "doubled, joined", client: private("a83f81100a4d0001"), want: netip.MustParseAddr("168.63.129.16")},
		{
			name:   "doubled, apart",
			client: `,"DHCPv4Client":{"Lease":{},"PrivateOptions":[{"Option":245,"PrivateOptionData":"0a4d0001"},{"Option":245,"PrivateOptionData":"a83f8110"}]}`,
			want:   netip.MustParseAddr("10.77.0.1"),
		},
		{name: "no hex", client: private("zz"), wantErr: `option 245: "zz" is not an address: want 4 bytes in hex with colons`},
		{name: "a number", client: `,"DHCPv4Client":{"Lease":{},"PrivateOptions":[{"Option":245,"PrivateOptionData":7}]}`, wantErr: `option 245: "" is 0 bytes long, want 4`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := parse(t, lease(tt.client))[0].Lease
			if tt.noLease || l == nil {
				if !tt.noLease || l != nil {
					t.Errorf("lease %+v, want none: %v", l, tt.noLease)
				}
				return
			}
			if err := fmt.Sprint(l.WireServerErr); l.WireServer != tt.want || err != tt.wantErr && (tt.wantErr != "" || l.WireServerErr != nil) {
				t.Errorf("%v, %v; want %v, %s", l.WireServer, l.WireServerErr, tt.want, tt.wantErr)
			}
		})
	}
}

func private(data string) string {
	return `,"DHCPv4Client":{"Lease":{},"PrivateOptions":[{"Option":245,"PrivateOptionData":"` + data + `"}]}`
}

// A field of another type, and one that nobody knows, spoil nothing else.
func TestUnknownAndOddFields(t *testing.T) {
	got := parse(
		t,
		`{"Index":"two","Name":"x"}`, `{"Index":3}`, `7`,
		`{"Index":4,"Name":"eth1","HardwareAddress":"00:0d:3a","MasterInterfaceIndex":9,"Quux":{"a":[1]},"NetworkFile":"/a.network",
		  "AdministrativeState":"unmanaged","Addresses":"none","DNS":[{"Address":[1,2,3]},{"Address":[1,2,3,999]},{"Address":[9,9,9,9]}],
		  "Routes":[{"Destination":[0,0,0,0],"DestinationPrefixLength":99,"ConfigSource":"DHCPv4"}]}`,
	)
	want := []networkd.Link{{Name: "eth1", Index: 4, Master: 9, AdminState: "unmanaged", Nameservers: addrs("9.9.9.9")}}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "null", "[]", `{"Interfaces":{}}`, `{"Interfaces":null}`} {
		if got, err := networkd.Parse([]byte(text)); len(got) > 0 || (err == nil) != (text != "") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	golden, err := os.ReadFile("testdata/trixie-describelink.json")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := networkd.Parse(manager(string(golden))[:5000]); err == nil {
		t.Errorf("a truncated answer: %v, no error", got)
	}
}

// The route to a nameserver that systemd-networkd itself adds makes no interface
// primary.
func TestRouteToNameserver(t *testing.T) {
	l := parse(t, `{"Index":3,"Name":"eth1","Addresses":[{"Address":[10,0,0,5],"ConfigSource":"DHCPv4"}],
		"Routes":[{"Destination":[168,63,129,16],"DestinationPrefixLength":32,"ConfigSource":"DHCPv4"}]}`)[0].Lease
	if l == nil || l.Primary() {
		t.Errorf("lease %+v, want one that is not primary", l)
	}
}

// A hundred veths beside the NIC, as on a machine with containers.
func TestManyLinks(t *testing.T) {
	golden, err := os.ReadFile("testdata/forky-describelink.json")
	if err != nil {
		t.Fatal(err)
	}
	links := []string{string(golden)}
	for i := range 100 {
		links = append(links, fmt.Sprintf(`{"Index":%d,"Name":"veth%d","Kind":"veth","MasterInterfaceIndex":3,"OperationalState":"enslaved","AdministrativeState":"unmanaged"}`, i+10, i))
	}
	got := parse(t, links...)
	if len(got) != 101 || got[0].Lease == nil || got[100].Master != 3 || got[100].Lease != nil {
		t.Errorf("%d links, last %+v", len(got), got[len(got)-1])
	}
}

func FuzzParse(f *testing.F) {
	for _, suite := range []string{"bookworm", "trixie", "forky"} {
		golden, err := os.ReadFile(filepath.Join("testdata", suite+"-describelink.json"))
		if err != nil {
			f.Fatal(err)
		}
		var small bytes.Buffer
		if err := json.Compact(&small, golden); err != nil {
			f.Fatal(err)
		}
		f.Add(manager(small.String()))
	}
	f.Add([]byte(`{"Interfaces":[{"Index":2,"Name":"eth0"` + private("a83f") + `}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		links, err := networkd.Parse(text)
		if err != nil && links != nil {
			t.Errorf("%d links beside the error %v", len(links), err)
		}
		for _, l := range links {
			if l.Name == "" || l.Index <= 0 {
				t.Errorf("a link without a name or an index: %+v", l)
			}
			if l.Lease == nil {
				continue
			}
			for _, a := range l.Lease.Nameservers {
				if !a.Is4() {
					t.Errorf("nameserver %v of a DHCPv4 lease", a)
				}
			}
			if l.Lease.WireServerErr != nil && l.Lease.WireServer.IsValid() {
				t.Errorf("%v beside %v", l.Lease.WireServer, l.Lease.WireServerErr)
			}
		}
	})
}
