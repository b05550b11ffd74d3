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

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// doctorCase is a guest that is broken for real, and the first step that doctor
// must say has failed. The texts are pinned in internal/doctor/testdata.
type doctorCase struct {
	name   string
	config func(*lab.Config)
	// early breaks it before NetworkManager comes up, late once eth0 is up.
	early, late func(*testing.T, *lab.Lab)

	want   string // the first step that fails, and its code
	status int    // exit status; 0 means 1
	// fix does what the remedy says if that is not a command; nil: the commands
	// are run. Then nothing must fail any more.
	fix  func(*testing.T, *lab.Lab)
	stay bool // the fault cannot be fixed in the guest
}

// sh runs commands in the guest.
func sh(commands ...string) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		for _, c := range commands {
			run(t, l, "sh", "-c", c)
		}
	}
}

const (
	reapply  = "sudo nmcli device reapply eth0"
	gatePath = "/usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch"
	ruleset  = "sudo nft list ruleset"
)

var doctorCases = []doctorCase{
	{
		name: "not Azure", config: func(c *lab.Config) { c.Cmdline = "ro ignition.platform.id=qemu" }, status: 3, stay: true,
		want: "platform not-azure",
	},
	{
		name: "NetworkManager stopped", late: sh("systemctl stop NetworkManager"),
		want: "networkmanager networkmanager-stopped",
	},
	{
		name: "dispatcher disabled", early: sh("systemctl disable NetworkManager-dispatcher.service"),
		want: "dispatcher dispatcher-off",
	},
	{
		name: "hook not executable", early: sh("chmod 644 " + gatePath),
		want: "hook hook-mode",
	},
	{
		name: "hook of another user's", early: sh("chown 65534 " + gatePath),
		want: "hook hook-mode",
	},
	{
		name: "hook masked", early: sh("ln -s /dev/null /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch"),
		want: "hook hook-masked",
	},
	{
		name: "interface unmanaged", late: sh("nmcli device set eth0 managed no", "rm /run/nm-azure-dispatch/check-in.json"),
		want: "device device-unmanaged",
	},
	{
		name: "no DHCP server", early: func(t *testing.T, l *lab.Lab) {
			lease := lab.AzureLease()
			lease.Silent = true
			l.Cloud.SetLease("", lease)
		},
		want: "lease no-lease",
		fix: func(t *testing.T, l *lab.Lab) {
			l.Cloud.SetLease("", lab.AzureLease())
			run(t, l, "nmcli", "device", "connect", "eth0")
		},
	},
	{
		// Not Ready: with Ready, and names that resolve, it is only a warning.
		name: "routes missing", late: sh("ip route del default", "ip route del 168.63.129.16", "rm /run/nm-azure-dispatch/check-in.json"),
		want: "route route-missing",
	},
	{
		name: "two NICs, the route by the wrong one", config: wrongNIC,
		early: sh("nft add table ip f", "nft add chain ip f out '{ type filter hook output priority 0; }'", "nft add rule ip f out oifname eth1 ip daddr 168.63.129.16 drop"),
		want:  "route route-wrong-nic",
	},
	{
		name: "WireServer refuses", early: func(t *testing.T, l *lab.Lab) { l.Cloud.CloseWire() },
		want: "tcp-80 tcp-refused",
		fix:  func(t *testing.T, l *lab.Lab) { ok(t, l.Cloud.PlayWire(lab.WireScript{})) },
	},
	{
		name:  "firewall in the guest",
		early: sh("nft add table ip f", "nft add chain ip f out '{ type filter hook output priority 0; }'", "nft add rule ip f out ip daddr 168.63.129.16 tcp dport 80 drop"),
		want:  "tcp-80 tcp-no-answer",
		fix:   sh("nft delete table ip f"),
	},
	{
		name: "static profile with another address", config: func(c *lab.Config) {
			c.Profiles = []lab.Profile{{ID: "eth0", Settings: []string{
				"ipv4.method=manual", "ipv4.address1=10.99.0.5/24,10.99.0.1", "ipv4.dns=168.63.129.16;",
			}}}
		},
		want: "lease dhcp-off",
	},
	{
		name: "WireServer hangs", early: playGoalState(lab.WireStep{Times: -1, Hang: true}),
		want: "goal-state goal-state-no-answer",
		fix:  playGoalState(),
	},
	{
		name: "WireServer is being updated", early: playGoalState(lab.WireStep{Times: -1, Status: 410}),
		want: "goal-state goal-state-busy",
		fix:  playGoalState(),
	},
	{
		name: "a proxy in between", early: playGoalState(lab.WireStep{Times: -1, Body: new("<html><body>Access denied</body></html>")}),
		want: "goal-state goal-state-foreign",
		fix:  playGoalState(),
	},
	{
		name: "provisioning failed", early: func(t *testing.T, l *lab.Lab) {
			sh("systemctl stop nm-azure-checkin.timer nm-azure-checkin.service", "ln -s /dev/null /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch")(t, l)
			ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
			connected(t, l, "eth0")
			sh("nm-azure-dispatch report-failure --reason 'no disk'", "rm /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch")(t, l)
		},
		want: "record failure-reported",
		fix:  sh("nm-azure-dispatch check-in --force", "nmcli device reapply eth0"), // the hook was not there for the nameservers
	},
	{
		name: "resolved masked", late: sh("systemctl mask --now systemd-resolved.service 2>&1"),
		want: "resolved resolved-stopped",
	},
	{
		// A call on the bus would start it: doctor must not.
		name: "resolved stopped", late: sh("systemctl stop systemd-resolved.service"),
		want: "resolved resolved-stopped",
	},
	{
		name: "resolv.conf gone", late: sh("rm /etc/resolv.conf", "sed -i 's/^hosts:.*/hosts: files dns/' /etc/nsswitch.conf"),
		want: "resolv-conf resolv-conf-unreadable",
	},
	{
		name: "link without nameservers", late: sh("resolvectl dns eth0 ''"),
		want: "link-dns dns-config-changed",
	},
	{
		name: "wrong nameservers by hand", late: sh("resolvectl dns eth0 203.0.113.1"),
		want: "link-dns other-servers",
	},
	{
		name: "the profile ignores the lease's nameservers",
		config: func(c *lab.Config) {
			c.Profiles = []lab.Profile{{ID: "eth0", Settings: []string{"ipv4.ignore-auto-dns=true"}}}
		},
		want: "link-dns no-dns-config",
	},
	{
		name: "nameservers silent", late: dnsFault(lab.DNSSilent),
		want: "nameservers nameservers-silent",
		fix:  dnsFault(lab.DNSHealthy),
	},
	{
		name: "nameservers refuse", late: dnsFault(lab.DNSRefuse),
		want: "nameservers nameservers-refuse",
		fix:  dnsFault(lab.DNSHealthy),
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
		ok(t, l.Cloud.PlayWire(lab.WireScript{GoalState: steps}))
	}
}

func dnsFault(f lab.DNSFault) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		for _, server := range strings.Fields(leaseDNS) {
			l.Cloud.SetDNSFault(server, f)
		}
	}
}

// Every broken guest is diagnosed by doctor alone, within five seconds, and its
// remedy fixes it.
func TestDoctor(t *testing.T) { runDoctorCases(t, doctorCases) }

func runDoctorCases(t *testing.T, cases []doctorCase) {
	t.Helper()
	for i, c := range cases {
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
			if strings.HasPrefix(c.want, "hook ") || strings.HasPrefix(c.want, "dispatcher ") {
				connected(t, l, "eth0") // a device that is being activated cannot be reapplied
			}
			before := activeUnits(t, l)
			var r doctor.Report
			eventually(t, l, "doctor finds it", func(context.Context) (err error) {
				var status int
				if r, status = examine(t, l); failure(r) != c.want {
					return fmt.Errorf("first failure is %q, want %q: %+v", failure(r), c.want, r)
				}
				if want := max(c.status, 1); status != want {
					return fmt.Errorf("exit status %d, want %d", status, want)
				}
				return nil
			})
			if got := activeUnits(t, l); got != before {
				t.Errorf("active units before:\n%s\nand after:\n%s", before, got)
			}
			first := step(r, *r.FirstFailure)
			t.Logf("%s: %s -> %s", first.Name, first.Seen, first.Remedy)
			if c.stay {
				return
			}
			if c.fix == nil {
				_, command, _ := strings.Cut(first.Remedy, ": sudo ")
				c.fix = sh(strings.ReplaceAll(command, "sudo ", ""))
			}
			c.fix(t, l)
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
	took := time.Since(start)
	t.Logf("doctor took %v", took)
	if took > 6*time.Second { // 5 s, and a busy machine
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

// failure is the step that failed first, and its code.
func failure(r doctor.Report) string {
	if r.FirstFailure == nil {
		return ""
	}
	return *r.FirstFailure + " " + step(r, *r.FirstFailure).Code
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
