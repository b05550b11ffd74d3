package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// doctorCase is a guest that is broken for real, and the first step that doctor
// must say has failed.
type doctorCase struct {
	name   string
	config func(*lab.Config)
	// early breaks it before NetworkManager comes up, late once eth0 is up.
	early, late func(*testing.T, *lab.Lab)

	want   doctor.Step
	status int // exit status; 0 means 1
	// mend does what the remedy says where that is no command; nil: the commands
	// are run. Then nothing must fail any more.
	mend func(*testing.T, *lab.Lab)
	stay bool // what is broken cannot be mended in the guest
}

// sh breaks or mends by commands in the guest.
func sh(commands ...string) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		for _, c := range commands {
			run(t, l, "sh", "-c", c)
		}
	}
}

func failed(name, seen, remedy string) doctor.Step {
	return doctor.Step{Name: name, Verdict: doctor.Fail, Seen: seen, Remedy: remedy}
}

const (
	reapply  = "sudo nmcli device reapply eth0"
	gatePath = "/usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch"
	ruleset  = "sudo nft list ruleset"
)

var doctorCases = []doctorCase{
	{
		name: "not Azure", config: func(c *lab.Config) { c.Cmdline = "ro ignition.platform.id=qemu" }, status: 3, stay: true,
		want: failed("platform", "this machine is not Azure: ignition.platform.id=qemu",
			"nothing is to be done elsewhere; on Azure one of these says so, the kernel command line with ignition.platform.id=azure: cat /proc/cmdline /sys/class/dmi/id/chassis_asset_tag"),
	},
	{
		name: "NetworkManager stopped", late: sh("systemctl stop NetworkManager"),
		want: failed("networkmanager", "NetworkManager is not running", "start it: sudo systemctl enable --now NetworkManager.service"),
	},
	{
		name: "dispatcher disabled", early: sh("systemctl disable NetworkManager-dispatcher.service"),
		want: failed("dispatcher", "NetworkManager-dispatcher.service is disabled: no event reaches the hook",
			"enable it, then repeat the event: sudo systemctl enable NetworkManager-dispatcher.service && "+reapply),
	},
	{
		name: "hook not executable", early: sh("chmod 644 " + gatePath),
		want: failed("hook", gatePath+" has mode -rw-r--r--, so nm-dispatcher does not run it: it is not executable",
			"mend it, then repeat the event: sudo chmod 0755 "+gatePath+" && "+reapply),
	},
	{
		name: "hook of another user's", early: sh("chown 65534 " + gatePath),
		want: failed("hook", gatePath+" belongs to user 65534, so nm-dispatcher does not run it",
			"give it to root, then repeat the event: sudo chown root: "+gatePath+" && "+reapply),
	},
	{
		name: "hook masked", early: sh("ln -s /dev/null /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch"),
		want: failed("hook", "/etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch masks the hook",
			"remove it, then repeat the event: sudo rm /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch && "+reapply),
	},
	{
		name: "interface unmanaged", late: sh("nmcli device set eth0 managed no"),
		want: failed("device", "eth0 is not managed by NetworkManager",
			"let it, and take the interface out of unmanaged-devices in NetworkManager.conf: sudo nmcli device set eth0 managed yes"),
	},
	{
		name: "no DHCP server", early: func(t *testing.T, l *lab.Lab) {
			lease := lab.AzureLease()
			lease.Silent = true
			ok(t, l.Cloud.SetLease(t.Context(), "", lease))
		},
		want: failed("lease", "no DHCPv4 lease: no DHCP server has answered on eth0",
			"look for what keeps UDP ports 67 and 68 out, then ask again: sudo nmcli device connect eth0"),
		mend: func(t *testing.T, l *lab.Lab) {
			ok(t, l.Cloud.SetLease(t.Context(), "", lab.AzureLease()))
			run(t, l, "nmcli", "device", "connect", "eth0")
		},
	},
	{
		name: "routes missing", late: sh("ip route del default", "ip route del 168.63.129.16"),
		want: failed("route", "no route to 168.63.129.16",
			"have NetworkManager set the routes anew; the profile must not have ipv4.never-default or ipv4.ignore-auto-routes: "+reapply),
	},
	{
		name: "two NICs, the route by the wrong one", config: wrongNIC,
		late: func(t *testing.T, l *lab.Lab) { up(t, l, "eth1") },
		want: failed("route", "168.63.129.16 via 10.77.0.1 on eth1 from 10.77.0.101; Azure answers eth0 only, whose lease has the route",
			"give eth0 its routes back: sudo nmcli connection modify eth0 ipv4.ignore-auto-routes no && sudo nmcli connection up eth0"),
	},
	{
		name: "WireServer refuses", early: func(t *testing.T, l *lab.Lab) { ok(t, l.Cloud.CloseWire(t.Context())) },
		want: failed("tcp-80", "168.63.129.16 port 80: connection refused",
			"wait a minute, the host may be busy with an update; then look for what rejects or redirects it: "+ruleset),
		mend: func(t *testing.T, l *lab.Lab) { ok(t, l.Cloud.PlayWire(t.Context(), lab.WireScript{})) },
	},
	{
		name:  "firewall in the guest",
		early: sh("nft add table ip f", "nft add chain ip f out '{ type filter hook output priority 0; }'", "nft add rule ip f out ip daddr 168.63.129.16 tcp dport 80 drop"),
		want: failed("tcp-80", "168.63.129.16 port 80: no answer within 2s",
			"look for a rule that keeps TCP port 80 of that address from being reached, also in a network appliance on the way: "+ruleset),
		mend: sh("nft delete table ip f"),
	},
	{
		name: "static profile with another address", config: func(c *lab.Config) {
			c.Profiles = []lab.Profile{{ID: "eth0", Settings: []string{
				"ipv4.method=manual", "ipv4.address1=10.99.0.5/24,10.99.0.1", "ipv4.dns=168.63.129.16;",
			}}}
		},
		want: failed("tcp-80", "168.63.129.16 port 80: no answer within 2s", "the static address may not be the one that Azure gave this machine: sudo nmcli connection modify eth0 ipv4.method auto ipv4.gateway '' ipv4.addresses '' && sudo nmcli connection up eth0"),
	},
	{
		name: "WireServer hangs", early: playGoalState(lab.WireStep{Times: -1, Hang: true}),
		want: failed("goal-state", "GET http://168.63.129.16/machine/?comp=goalstate: no answer within 2.1s", "wait some minutes, the host answers so while it is updated; if it goes on, stop and start the VM"),
		mend: playGoalState(),
	},
	{
		name: "WireServer is being updated", early: playGoalState(lab.WireStep{Times: -1, Status: 410}),
		want: failed("goal-state", `http://168.63.129.16/machine/?comp=goalstate: 410 Gone: ""`,
			"wait some minutes, the host answers so while it is updated; if it goes on, stop and start the VM"),
		mend: playGoalState(),
	},
	{
		name: "a proxy in between", early: playGoalState(lab.WireStep{Times: -1, Body: new("<html><body>Access denied</body></html>")}),
		want: failed("goal-state", `goal state: root element is "html", want "GoalState"`, "something else answers in the WireServer's place, mostly a proxy that must leave this address out; see what it says: curl -sH x-ms-version:2012-11-30 'http://168.63.129.16/machine/?comp=goalstate'"),
		mend: playGoalState(),
	},
	{
		name: "provisioning failed", early: func(t *testing.T, l *lab.Lab) {
			sh("systemctl stop nm-azure-checkin.timer nm-azure-checkin.service", "ln -s /dev/null /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch")(t, l)
			ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
			connected(t, l, "eth0")
			sh("nm-azure-dispatch report-failure --reason 'no disk'", "rm /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch")(t, l)
		},
		want: failed("record", "ProvisioningFailed was reported, and that stands for this boot",
			"restart the VM once the cause is mended, or check in all the same: sudo nm-azure-dispatch check-in --force"),
		mend: sh("nm-azure-dispatch check-in --force", "nmcli device reapply eth0"), // the hook was not there for the nameservers
	},
	{
		name: "resolved masked", late: sh("systemctl mask --now systemd-resolved.service 2>&1"),
		want: failed("resolved", "systemd-resolved is masked, but /etc/resolv.conf leads to it",
			"unmask it, then repeat the event: sudo systemctl unmask systemd-resolved.service && sudo systemctl enable --now systemd-resolved.service && "+reapply),
	},
	{
		// A call on the bus would start it: doctor must not.
		name: "resolved stopped", late: sh("systemctl stop systemd-resolved.service"),
		want: failed("resolved", "systemd-resolved is not running, but /etc/resolv.conf leads to it",
			"start it, then repeat the event: sudo systemctl enable --now systemd-resolved.service && "+reapply),
	},
	{
		name: "resolv.conf gone", late: sh("rm /etc/resolv.conf"),
		want: failed("resolv-conf", "/etc/resolv.conf cannot be read: lstat etc/resolv.conf: no such file or directory",
			"link it to systemd-resolved: sudo ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf"),
	},
	{
		name: "link without nameservers", late: sh("resolvectl dns eth0 ''"),
		want: failed("link-dns", "systemd-resolved has no nameservers, NetworkManager wants 168.63.129.16 10.77.0.1", "have the hook see to it: "+reapply),
	},
	{
		name: "wrong nameservers by hand", late: sh("resolvectl dns eth0 203.0.113.1"),
		want: failed("link-dns", "somebody gave eth0 203.0.113.1, NetworkManager wants 168.63.129.16 10.77.0.1",
			"take them back, unless they are meant: sudo resolvectl revert eth0 && "+reapply),
	},
	{
		name: "the profile ignores the lease's nameservers",
		config: func(c *lab.Config) {
			c.Profiles = []lab.Profile{{ID: "eth0", Settings: []string{"ipv4.ignore-auto-dns=true"}}}
		},
		want: failed("link-dns", "systemd-resolved has no nameservers, and NetworkManager wants none for eth0; the lease has 168.63.129.16 10.77.0.1, NetworkManager was told otherwise",
			"take the lease's, or set some: sudo nmcli connection modify eth0 ipv4.ignore-auto-dns no ipv4.dns 168.63.129.16 && sudo nmcli connection up eth0"),
	},
	{
		name: "nameservers silent", late: dnsFault(lab.DNSSilent),
		want: failed("nameservers", "168.63.129.16: no answer; 10.77.0.1: no answer",
			"see that they run, where they are your own, and that nothing keeps UDP and TCP port 53 from being reached: "+ruleset),
		mend: dnsFault(lab.DNSHealthy),
	},
	{
		name: "nameservers refuse", late: dnsFault(lab.DNSRefuse),
		want: failed("nameservers", "", "have them answer this machine (recursion allowed, forwarders in reach), or set others in the virtual network"),
		mend: dnsFault(lab.DNSHealthy),
	},
}

// wrongNIC has the secondary interface take what is for Azure.
func wrongNIC(c *lab.Config) {
	c.NICs = []string{"eth0", "eth1"}
	c.Leases = map[string]lab.Lease{
		"eth0": lab.AzureLease().At("10.77.0.100"), "eth1": lab.AzureLease().Without(lab.OptClasslessRoute).At("10.77.0.101"),
	}
	c.Profiles = []lab.Profile{
		{ID: "eth0", Settings: []string{"ipv4.ignore-auto-routes=true", "ipv4.route-metric=200"}},
		{ID: "eth1", Settings: []string{"ipv4.route-metric=100"}},
	}
}

func playGoalState(steps ...lab.WireStep) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		ok(t, l.Cloud.PlayWire(t.Context(), lab.WireScript{GoalState: steps}))
	}
}

func dnsFault(f lab.DNSFault) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		for _, server := range strings.Fields(leaseDNS) {
			ok(t, l.Cloud.SetDNSFault(t.Context(), server, f))
		}
	}
}

// Every broken guest is diagnosed by doctor alone, within five seconds, and its
// remedy mends it.
func TestDoctor(t *testing.T) {
	for i, c := range doctorCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := quiet()
			cfg.Systemd = true
			cfg.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
			if c.config != nil {
				c.config(&cfg)
			}
			l := startProduct(t, lab.Suites[i%len(lab.Suites)], cfg)
			ok(t, l.Guest.Symlink("../libexec/nm-azure-dispatch", "/usr/bin/nm-azure-dispatch"))
			if c.early != nil {
				c.early(t, l)
			}
			ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
			if c.late != nil {
				up(t, l, "eth0")
				eventually(t, l, "checked in", prints(l, `"state": "ready"`, "cat", "/run/nm-azure-dispatch/check-in.json"))
				c.late(t, l)
			}
			before := activeUnits(t, l)
			var r doctor.Report
			eventually(t, l, "doctor finds it", func(context.Context) (err error) {
				var status int
				if r, status = examine(t, l); r.FirstFailure == nil || *r.FirstFailure != c.want.Name {
					return fmt.Errorf("%+v", r)
				}
				if want := max(c.status, 1); status != want {
					return fmt.Errorf("exit status %d, want %d", status, want)
				}
				return nil
			})
			if got := activeUnits(t, l); got != before {
				t.Errorf("active units before:\n%s\nand after:\n%s", before, got)
			}
			got := step(r, c.want.Name)
			if c.want.Seen == "" {
				got.Seen = "" // it depends
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(doctor.Step{})); diff != "" {
				t.Errorf("first failure (-want +got):\n%s", diff)
			}
			t.Logf("%s: %s", step(r, c.want.Name).Name, step(r, c.want.Name).Seen)
			if c.stay {
				return
			}
			if c.mend == nil {
				_, command, _ := strings.Cut(c.want.Remedy, ": ")
				c.mend = sh(strings.ReplaceAll(command, "sudo ", ""))
			}
			c.mend(t, l)
			eventually(t, l, "nothing fails any more", func(context.Context) error {
				if r, status := examine(t, l); status != 0 {
					return fmt.Errorf("exit status %d: %s", status, notOK(r))
				}
				return nil
			})
		})
	}
}

// examine runs doctor, which must not take five seconds.
func examine(t *testing.T, l *lab.Lab) (doctor.Report, int) {
	t.Helper()
	start := time.Now()
	out, err := l.Guest.Run(t.Context(), lab.ProductBinary, "doctor", "--json")
	if took := time.Since(start); took > 6*time.Second { // 5 s, and a busy machine
		t.Errorf("doctor took %v", took)
	}
	status := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	return r, status
}

func step(r doctor.Report, name string) doctor.Step {
	for _, s := range r.Steps {
		if s.Name == name {
			return s
		}
	}
	return doctor.Step{}
}

func notOK(r doctor.Report) string {
	var b strings.Builder
	for _, s := range r.Steps {
		if s.Verdict != doctor.OK {
			fmt.Fprintf(&b, "%s %s: %s\n", s.Name, s.Verdict, s.Seen)
		}
	}
	return b.String()
}

// activeUnits are the services that run, but those that come and go by
// themselves.
func activeUnits(t *testing.T, l *lab.Lab) string {
	t.Helper()
	out := run(t, l, "systemctl", "list-units", "--type=service", "--state=running", "--plain", "--no-legend")
	var names []string
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(line, " ")
		if name != "NetworkManager-dispatcher.service" && name != "nm-azure-checkin.service" && !strings.HasPrefix(name, "systemd-hostnamed") {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
