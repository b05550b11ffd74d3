package lab_test

import (
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

const (
	libcHosts  = "sed -i 's/^hosts:.*/hosts: files dns/' /etc/nsswitch.conf" // without nss-resolve
	forget     = "rm /run/nm-azure-dispatch/check-in.json"                   // what a Ready machine no longer needs is only a warning
	resolvedRe = "systemctl restart systemd-resolved.service"
)

// resolvedConf writes a setting to resolved.conf.
func resolvedConf(setting string) func(*testing.T, *lab.Lab) {
	return sh("printf '[Resolve]\\n"+setting+"\\n' > /etc/systemd/resolved.conf", resolvedRe)
}

func playWire(script lab.WireScript) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		ok(t, l.Cloud.PlayWire(script))
	}
}

func oneProfile(settings ...string) func(*lab.Config) {
	return func(c *lab.Config) { c.Profiles = []lab.Profile{{ID: "eth0", Settings: settings}} }
}

// decidedCases are guests of which an earlier doctor said that nothing failed,
// pointed at a consequence, or gave a remedy that did not help.
var decidedCases = []doctorCase{
	{
		name: "every report is forbidden", early: playWire(lab.WireScript{
			Health: []lab.WireStep{{Times: -1, Status: 403}}, Provisioning: []lab.WireStep{{Times: -1, Status: 403}},
		}),
		want: "record report-forbidden", fix: playWire(lab.WireScript{}),
	},
	{
		name: "ipv4.dns beside the lease's", config: oneProfile("ipv4.dns=203.0.113.1;"),
		want: "link-dns dns-differs-from-lease",
	},
	{
		name:  "global-dns",
		early: sh("printf '[global-dns-domain-*]\\nservers=203.0.113.1\\n' > /etc/NetworkManager/conf.d/90-dns.conf"),
		want:  "link-dns global-dns",
		fix:   sh("rm /etc/NetworkManager/conf.d/90-dns.conf", "nmcli general reload", "nmcli device reapply eth0"),
	},
	{
		name: "the stub is blocked", late: sh(libcHosts, "nft add table ip f", "nft add chain ip f out '{ type filter hook output priority 0; }'", "nft add rule ip f out ip daddr 127.0.0.53 drop"),
		want: "lookup lookup-stub", fix: sh("nft delete table ip f"),
	},
	{
		name: "hosts: files", late: sh("sed -i 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf"),
		want: "lookup lookup-no-service",
	},
	{
		name: "the stub is off", late: func(t *testing.T, l *lab.Lab) {
			sh(libcHosts, "rm /etc/resolv.conf", "echo nameserver 127.0.0.53 > /etc/resolv.conf")(t, l) // newer versions turn their own file into another
			resolvedConf("DNSStubListener=no")(t, l)
		},
		want: "resolv-conf resolv-conf-stub-off", fix: sh("rm /etc/systemd/resolved.conf", resolvedRe),
	},
	{
		name: "static resolv.conf that hangs", late: sh(libcHosts, "rm /etc/resolv.conf", "echo nameserver 203.0.113.1 > /etc/resolv.conf"),
		want: "lookup lookup-failed", fix: sh("ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf"),
	},
	{
		name: "prohibited by a rule", early: sh("ip rule add pref 100 to 168.63.129.16 prohibit"),
		want: "route route-rejects", fix: sh("ip rule del pref 100"),
	},
	{
		name: "blackhole", early: sh("ip route add blackhole 168.63.129.16"),
		want: "route route-rejects", fix: sh("ip route del blackhole 168.63.129.16"),
	},
	{
		name: "by a dead gateway", late: sh("ip route add 168.63.129.16 via 10.77.0.99 dev eth0", forget),
		want: "route route-gateway",
	},
	{
		name: "frozen ARP entry", late: sh("ip neigh replace 10.77.0.1 lladdr 02:00:00:00:00:99 dev eth0 nud permanent", forget),
		want: "route route-neighbour", fix: sh("ip neigh del 10.77.0.1 dev eth0", "nmcli device reapply eth0"),
	},
	{
		name:  "hook replaced",
		early: sh("printf '#!/bin/sh\\nexit 0\\n' > /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch", "chmod 755 /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch"),
		want:  "hook hook-replaced",
	},
	{
		name: "a proxy forbids", early: playGoalState(lab.WireStep{Times: -1, Status: 403, Body: new("<html><body>Access denied</body></html>")}),
		want: "goal-state goal-state-proxy", fix: playGoalState(),
	},
	{
		name: "large packets are lost", early: sh("nft add table ip f", "nft add chain ip f out '{ type filter hook output priority 0; }'", "nft add chain ip f in '{ type filter hook input priority 0; }'",
			"nft add rule ip f out tcp flags syn tcp option maxseg size '>' 600 ct mark set 1", "nft add rule ip f in ip saddr 168.63.129.16 ct mark 1 ip length '>' 200 drop"),
		want: "goal-state goal-state-mtu", fix: sh("nft delete table ip f"),
	},
	{
		name:  "unmanaged by configuration",
		early: sh("printf '[keyfile]\\nunmanaged-devices=interface-name:eth0\\n' > /etc/NetworkManager/conf.d/90-mine.conf"),
		want:  "device device-unmanaged",
		fix:   sh("rm /etc/NetworkManager/conf.d/90-mine.conf", "nmcli general reload conf", "nmcli device set eth0 managed yes"),
	},
	{name: "routes in another table", config: oneProfile("ipv4.route-table=100"), want: "route route-profile"},
	{name: "ipv4.method=disabled", config: oneProfile("ipv4.method=disabled"), want: "lease dhcp-off"},
	{name: "DNSSEC", late: resolvedConf("DNSSEC=yes"), want: "lookup lookup-dnssec"},
	{name: "DNSOverTLS", late: resolvedConf("DNSOverTLS=yes"), want: "lookup lookup-dns-over-tls"},
	{
		name: "another link takes all names",
		late: sh("ip link add vpn0 type veth peer name vpn1", "nmcli device set vpn0 managed no", "nmcli device set vpn1 managed no",
			"ip addr add 10.9.9.1/24 dev vpn0", "ip link set vpn0 up", "ip link set vpn1 up", "resolvectl dns vpn0 10.9.9.9", "resolvectl domain vpn0 '~.'"),
		want: "lookup lookup-other-link",
	},
	{
		name: "the primary NIC has no lease", config: func(c *lab.Config) {
			c.NICs = []string{"eth0", "eth1"}
			silent := lab.AzureLease()
			silent.Silent = true
			c.Leases = map[string]lab.Lease{"eth0": silent, "eth1": lab.AzureLease().Without(lab.OptClasslessRoute).Without(lab.OptRouter).At("10.77.0.101")}
			c.Profiles = []lab.Profile{{ID: "eth0"}, {ID: "eth1"}}
		},
		want: "lease no-lease",
		fix: func(t *testing.T, l *lab.Lab) {
			l.Cloud.SetLease("eth0", lab.AzureLease())
			run(t, l, "nmcli", "device", "connect", "eth0")
		},
	},
	{
		name: "the unit cannot start", early: func(t *testing.T, l *lab.Lab) {
			l.Cloud.CloseWire()
			sh("mkdir -p /etc/systemd/system/nm-azure-checkin.service.d",
				"printf '[Service]\\nBindReadOnlyPaths=/nonexistent\\n' > /etc/systemd/system/nm-azure-checkin.service.d/x.conf", "systemctl daemon-reload")(t, l)
		},
		want: "timer unit-cannot-start",
		fix: func(t *testing.T, l *lab.Lab) {
			ok(t, l.Cloud.PlayWire(lab.WireScript{}))
			sh("rm /etc/systemd/system/nm-azure-checkin.service.d/x.conf", "systemctl daemon-reload", "systemctl start nm-azure-checkin.service")(t, l)
		},
	},
}

// What doctor names is what is wrong, and its remedy fixes it.
func TestDoctorDecides(t *testing.T) { runDoctorCases(t, decidedCases) }
