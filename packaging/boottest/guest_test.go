package boottest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/boottest"
)

var (
	rpm   = flag.String("rpm", "", "the package to test; none: skip the tests")
	older = flag.String("older", "", "a package of an older version")
	suite = flag.String("suite", "bookworm", "Debian's release: systemd 252 as in RHEL 9, or trixie with 257")
	qemu  = flag.Bool("qemu", false, "boot virtual machines, not containers")
)

// onAzure is how a machine of Fedora CoreOS on Azure is booted.
const onAzure = "ignition.platform.id=azure"

// azureTag is in the firmware's tables of every virtual machine on Azure.
const azureTag = "7783-7084-3265-9085-8269-3286-77"

func TestMain(m *testing.M) {
	boottest.Main()
	flag.Parse()
	if *rpm != "" {
		if err := boottest.Prepare(context.Background(), boottest.Config{Suite: *suite, QEMU: *qemu}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// guest is a machine and the test that it is for.
type guest struct {
	*boottest.Machine
	t *testing.T
}

// boot boots a machine with the package in it. What it logged is shown if the test fails.
func boot(t *testing.T, c boottest.Config) guest {
	t.Helper()
	if *rpm == "" {
		t.Skip("needs a package: make boot-test")
	}
	t.Parallel()
	c.Suite, c.QEMU = *suite, *qemu
	if c.RPMs == nil {
		c.RPMs = []string{*rpm}
	}
	began := time.Now()
	m, err := boottest.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("booted in %.1f s", time.Since(began).Seconds())
	g := guest{m, t}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(g.Console())
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// run runs a script in the guest and gives what it printed.
func (g guest) run(script string) string {
	g.t.Helper()
	out, err := g.Run(g.t.Context(), script)
	if err != nil {
		g.fatal(err)
	}
	return out
}

// want runs a script that is to print exactly this.
func (g guest) want(script, want string) {
	g.t.Helper()
	if got := g.run(script); got != want {
		g.fatal("want ", strconv.Quote(want), " of: ", script, "\n", got)
	}
}

func (g guest) fatal(why ...any) {
	g.t.Helper()
	g.t.Error(why...)
	log, err := g.Run(g.t.Context(), "journalctl -b --no-hostname -o short-monotonic | tail -n 150; systemctl --failed")
	g.t.Fatal(log, err)
}

func (g guest) reboot() {
	g.t.Helper()
	began := time.Now()
	if err := g.Reboot(g.t.Context()); err != nil {
		g.fatal(err)
	}
	g.t.Logf("rebooted in %.1f s", time.Since(began).Seconds())
}

func (g guest) wireServer(there bool) {
	g.t.Helper()
	if err := g.SetWireServer(g.t.Context(), there); err != nil {
		g.fatal(err)
	}
}

// wantReports waits until Azure has been told so many times, and that it stays with that.
func (g guest) wantReports(n int, limit time.Duration) {
	g.t.Helper()
	if *qemu {
		limit *= 6
	}
	if err := g.WaitReports(g.t.Context(), n, limit); err != nil {
		g.fatal(err)
	}
	g.settle()
	reports, err := g.Reports()
	if err != nil || len(reports) != n {
		g.fatal(len(reports), " reports, want ", n, ": ", err)
	}
}

// settle gives the guest time to do what it should not do.
func (g guest) settle() { time.Sleep(2 * time.Second) }

// wantHealthy sees that no unit has failed and no script of the dispatcher. In an emulated machine on a busy host the bus
// can take longer than the two seconds that the hook waits for it; then the script fails, and the next event is in time.
func (g guest) wantHealthy() {
	g.t.Helper()
	g.want("systemctl --failed --no-legend", "")
	g.want("systemctl is-system-running || :", "running")
	if *qemu {
		return
	}
	g.want("journalctl -b -q -o cat -t nm-dispatcher -g 'failed|cannot' || :", "")
}

// wantDNS sees that names are resolved by the nameserver of the lease.
func (g guest) wantDNS() {
	g.t.Helper()
	g.want("resolvectl query --legend=no "+boottest.KnownName+" | cut -d' ' -f2", boottest.KnownAddr)
	g.want("getent hosts "+boottest.KnownName+" | cut -d' ' -f1", boottest.KnownAddr)
}

// slow tells if this boot took so long that the timer came before the network, as it can in an emulated machine on a busy
// host.
func (g guest) slow() bool {
	g.t.Helper()
	return *qemu && g.userspace() > 40*time.Second
}

// userspace is how long systemd took for the boot.
func (g guest) userspace() time.Duration {
	g.t.Helper()
	stamp := func(property string) int64 {
		n, err := strconv.ParseInt(g.run("systemctl show --value -p "+property), 10, 64)
		if err != nil {
			g.fatal(err)
		}
		return n
	}
	return time.Duration(stamp("FinishTimestampMonotonic")-stamp("UserspaceTimestampMonotonic")) * time.Microsecond
}
