package boottest_test

import (
	"flag"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

var policy = flag.String("policy", "", "a SELinux policy: a directory such as /etc/selinux of a Fedora machine")

// Domains of the hook and of the unit: docs/decisions/0009-selinux.md.
const hookDomain, unitDomain = "NetworkManager_dispatcher_custom_t", "unconfined_service_t"

// label gives the root file system its labels, without the help of a kernel. In an overlay setfiles takes all but directories
// for another file system, unless it gets each by name. The journal records what the kernel denies.
const label = `
mkdir -p /var/lib/hyperv && touch /var/lib/hyperv/.kvp_pool_1
ln -s /usr/lib/systemd/system/systemd-journald-audit.socket /etc/systemd/system/sockets.target.wants/ 2>/dev/null || :
. /etc/selinux/config
contexts=/etc/selinux/$SELINUXTYPE/contexts/files/file_contexts
mount -t proc proc /proc
setfiles -F -e /proc $contexts /
find / -path /proc -prune -o ! -type d -print0 | setfiles -F -0 -f - $contexts
umount /proc`

// TestSELinux boots a machine with a policy in enforcing mode.
func TestSELinux(t *testing.T) {
	if *policy == "" || *rpm == "" {
		t.Skip("needs a policy and a package: make selinux-test POLICY=DIR")
	}
	c := lab.VMConfig{
		Config: lab.Config{
			Suite: "trixie", Cmdline: onAzure + " security=selinux selinux=1 enforcing=1 audit=1 audit_backlog_limit=8192",
			DNS: "none", ToResolved: "false",
		},
		Packages: []string{"policycoreutils", "selinux-utils"},
		Copies:   map[string]string{*rpm: "/root/nm-azure-dispatch.rpm"},
		Setup:    "rpm -i --nodeps /root/nm-azure-dispatch.rpm\n" + label,
	}
	// The compiled regular expressions of the policy, *.bin, may be of another version.
	err := filepath.WalkDir(*policy, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) != ".bin" {
			c.Copies[path] = "/etc/selinux" + strings.TrimPrefix(path, *policy)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	g := bootVM(t, c)
	g.want("getenforce", "Enforcing")
	g.wantReports(1)
	g.wantDNS()
	g.wantDomains(hookDomain)
	g.wantHost("success")
	g.wantAllowed()

	// The WireServer is away: the hook hands over to the unit.
	g.Cloud.CloseWire()
	g.ok(g.Reboot(t.Context()))
	g.run("for i in $(seq 900); do systemctl -q is-active nm-azure-checkin.service && exit; sleep 0.1; done; exit 1")
	g.ok(g.Cloud.PlayWire(lab.WireScript{}))
	g.wantReports(2)
	g.wantDomains(hookDomain, unitDomain)
	g.wantHost("success")
	g.wantHealthy()
	g.wantAllowed()

	g.checkEnforced()
}

// checkEnforced shows that it is the policy that the hook's domain depends on: of the link to the gate one event makes a
// check-in, of a link straight to the program none does, since that stays in the dispatcher's own domain.
func (g guest) checkEnforced() {
	g.t.Helper()
	const event = "rm /run/nm-azure-dispatch/check-in.json && nmcli device reapply eth0"
	g.run("systemctl stop nm-azure-checkin.timer && " + event)
	g.wantReports(3)
	g.run("ln -sf /usr/libexec/nm-azure-dispatch /usr/lib/NetworkManager/dispatcher.d/90-nm-azure-dispatch && " + event)
	// Under its link's name, and not in the policy's denials: CentOS Stream 9 has this one in a dontaudit rule.
	const denied = "journalctl -b -q -t 90-nm-azure-dispatch -o verbose --output-fields=_SELINUX_CONTEXT"
	for deadline := time.Now().Add(5 * time.Minute); !slices.Contains(g.domains(denied, "_SELINUX_CONTEXT="), "NetworkManager_dispatcher_t"); {
		if time.Now().After(deadline) {
			g.fatal("the program, linked to directly, does not say that it may not read the kernel command line")
		}
		time.Sleep(100 * time.Millisecond)
	}
	g.wantReports(3)
	g.wantAllowed()
}

// wantDomains sees that the program logged from these domains in this boot, and from no other but the unit's: on a busy host
// the hook may hand over at any time.
func (g guest) wantDomains(want ...string) {
	g.t.Helper()
	got := g.domains("journalctl -b -q -t nm-azure-dispatch -o verbose --output-fields=_SELINUX_CONTEXT", "_SELINUX_CONTEXT=")
	for _, domain := range []string{hookDomain, unitDomain} {
		i := slices.Index(got, domain)
		if i < 0 && slices.Contains(want, domain) {
			g.fatal("the program logged from ", got, ", want ", want)
		}
		if i >= 0 {
			got = slices.Delete(got, i, i+1)
		}
	}
	if len(got) > 0 {
		g.fatal("the program logged from ", got, " too")
	}
}

// wantAllowed sees that nothing was denied to our domains in this boot.
func (g guest) wantAllowed() {
	g.t.Helper()
	for _, domain := range g.denied() {
		if domain == hookDomain || domain == unitDomain {
			g.fatal("denied: ", g.run("journalctl -b -q -o cat -g 'avc: *denied.*scontext=[^ ]*:"+domain+":'"))
		}
	}
}

// denied are the domains that were denied something in this boot.
func (g guest) denied() []string {
	g.t.Helper()
	return g.domains("journalctl -b -q -o cat -g 'avc: *denied' || :", "scontext=")
}

// domains are the types of the contexts that follow a key in what a script prints, each once.
func (g guest) domains(script, key string) []string {
	g.t.Helper()
	var types []string
	for _, m := range regexp.MustCompile(key+`[^: ]*:[^: ]*:([^: \n]*)`).FindAllStringSubmatch(g.run(script), -1) {
		types = append(types, m[1])
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// wantHost sees what the record for the host says, and whose it is.
func (g guest) wantHost(result string) {
	g.t.Helper()
	g.want("grep -ao 'result=[a-z]*' /var/lib/hyperv/.kvp_pool_1", "result="+result)
	g.want("stat -c %C /var/lib/hyperv/.kvp_pool_1 | cut -d: -f3", "hypervkvp_var_lib_t")
}
