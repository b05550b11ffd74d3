package boottest_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

var (
	rpm   = flag.String("rpm", "", "the package to test; none: skip the tests")
	older = flag.String("older", "", "a package of an older version")
)

// onAzure is how a machine of Fedora CoreOS on Azure is booted.
const onAzure = "ignition.platform.id=azure"

// azureTag is in the firmware's tables of every virtual machine on Azure.
const azureTag = "7783-7084-3265-9085-8269-3286-77"

// A name that only the lease's nameservers know.
const knownName, knownAddr = "known.internal.cloudapp.net", "10.77.0.99"

func TestMain(m *testing.M) {
	lab.Main()
	os.Exit(m.Run())
}

// guest is a virtual machine and the test that it is for.
type guest struct {
	*lab.VM
	t         *testing.T
	brokenOff map[string]int // reports, by boot: see unseen
}

// boot boots a machine with a package in it, and others in /root. NetworkManager leaves systemd-resolved alone, so that
// what resolved knows it knows from us. A package's dependencies are not checked: rpm knows nothing of Debian's packages.
func boot(t *testing.T, c lab.Config, setup, install string, others ...string) guest {
	t.Helper()
	t.Parallel()
	if *rpm == "" {
		t.Skip("needs a package: make boot-test")
	}
	c.DNS, c.ToResolved = "none", "false"
	vm := lab.VMConfig{Config: c, Copies: map[string]string{}}
	for _, f := range append(others, install) {
		vm.Copies[f] = "/root/" + filepath.Base(f)
	}
	vm.Setup = "rpm -i --nodeps /root/" + filepath.Base(install) + "\n" + setup
	return bootVM(t, vm)
}

// bootVM boots a machine.
func bootVM(t *testing.T, c lab.VMConfig) guest {
	t.Helper()
	v, err := lab.NewVM(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	g := guest{v, t, map[string]int{}}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	v.Cloud.SetName(knownName, knownAddr)
	began := time.Now()
	g.ok(v.Start(t.Context()))
	g.ok(v.WaitBooted(t.Context()))
	t.Logf("booted in %.1f s", time.Since(began).Seconds())
	return g
}

// run runs a script in the guest and gives what it printed.
func (g guest) run(script string) string {
	g.t.Helper()
	out, err := g.Run(g.t.Context(), "bash", "-c", script)
	if err != nil {
		g.fatal(err)
	}
	return out
}

// want runs scripts that are to print exactly this.
func (g guest) want(script, want string) {
	g.t.Helper()
	if got := g.run(script); got != want {
		g.fatal("want ", strconv.Quote(want), " of: ", script, "\n", got)
	}
}

func (g guest) ok(err error) {
	g.t.Helper()
	if err != nil {
		g.fatal(err)
	}
}

func (g guest) fatal(why ...any) {
	g.t.Helper()
	g.t.Error(why...)
	log, err := g.Run(g.t.Context(), "sh", "-c", "journalctl -b --no-hostname -o short-monotonic | tail -n 150; systemctl --failed")
	g.t.Fatal(log, err)
}

// reports are the requests that told Azure that the machine is ready, and were accepted.
func (g guest) reports() int {
	g.t.Helper()
	requests := g.Cloud.Requests()
	return len(slices.DeleteFunc(requests, func(r lab.WireRequest) bool { return r.Method != "POST" || r.Status/100 != 2 }))
}

// wantReports waits for this number of reports, and checks that there are no more, apart from those that are unseen.
func (g guest) wantReports(n int) {
	g.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); g.reports() < n && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	g.settle()
	if got, unseen := g.reports(), g.unseen(); got < n || got > n+unseen {
		g.fatal(got, " reports, want ", n, ", and at most ", unseen, " whose answer the hook did not see")
	}
}

// unseen returns the number of reports that the hook had sent when its second was over. An emulated machine on a busy host
// can need that long to read the answer: then Azure may have the report, and the unit sends another. The last error in the
// entry of the hand-over names such a request.
func (g guest) unseen() (n int) {
	g.t.Helper()
	count, err := strconv.Atoi(g.run("journalctl -b -q -o cat MESSAGE_ID=" + journal.HandedOver.ID + " | grep -c 'last failure: wire: POST .*: no answer in' || :"))
	g.ok(err)
	g.brokenOff[g.run("cat /proc/sys/kernel/random/boot_id")] = count
	for _, count := range g.brokenOff {
		n += count
	}
	return n
}

// settle gives the guest time to do what it should not do.
func (g guest) settle() { time.Sleep(2 * time.Second) }

// wantHealthy sees that no unit has failed. A script of the dispatcher can have: in an emulated machine on a busy host the
// bus can take longer than the two seconds that the hook waits for it; the next event is in time.
func (g guest) wantHealthy() {
	g.t.Helper()
	g.want("systemctl --failed --no-legend", "")
	g.want("systemctl is-system-running || :", "running")
}

// wantDNS sees that names are resolved by the nameservers of the lease.
func (g guest) wantDNS() {
	g.t.Helper()
	g.want("resolvectl query --legend=no "+knownName+" | cut -d' ' -f2", knownAddr)
	g.want("getent hosts "+knownName+" | cut -d' ' -f1", knownAddr)
}
