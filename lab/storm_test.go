package lab_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// Storms: many hooks at once, and many events in a row.

const (
	stormSize   = 200
	stormLimit  = 10 * time.Second // until the last one is gone
	stormMemory = 1536 << 10       // KiB, of all together
	// stormFailures may find that NetworkManager does not answer in two seconds, on a machine that has other things to do.
	stormFailures = 5
)

func TestStorm(t *testing.T) {
	secondary := lab.AzureLease().Without(lab.OptRouter).WithRoutes(map[string]string{"10.78.0.0/16": lab.Gateway})
	nics := []string{"eth0", "eth1", "eth2", "eth3"}
	various := quiet()
	various.NICs, various.Leases = nics, map[string]lab.Lease{"eth1": secondary, "eth2": secondary, "eth3": secondary}
	for name, c := range map[string]struct {
		config     lab.Config
		interfaces []string // each gets its part of the storm
	}{
		"one interface":      {quiet(), []string{"eth0"}},
		"several interfaces": {various, append([]string{"lo", "nosuch0"}, nics...)},
	} {
		t.Run(name, func(t *testing.T) {
			onSomeSuites(t, func(t *testing.T, suite string) {
				l := startProduct(t, suite, c.config)
				for _, nic := range c.config.NICs {
					up(t, l, nic)
				}
				up(t, l, "eth0")
				anotherBoot(t, l, 1)
				before := len(requests(t, l))
				storm(t, l, c.interfaces)
				if got := requests(t, l)[before:]; count2(got, health) != 1 {
					t.Errorf("requests %v, want one Ready", got)
				}
				if got := linkDNS(t, l, "eth0"); got != leaseDNS {
					t.Errorf("nameservers %q, want %q", got, leaseDNS)
				}
			})
		})
	}
}

// storm runs the hook 200 times at once, and checks that all succeed and nothing of them is left.
func storm(t *testing.T, l *lab.Lab, interfaces []string) {
	t.Helper()
	script := fmt.Sprintf(`set -- %s
		i=0
		while [ $i -lt %d ]; do
			env -i NM_DISPATCHER_ACTION=reapply DHCP4_IP_ADDRESS=10.77.0.100 %s $1 reapply 2>&1 || echo "exit status $? of $1" &
			set -- "$@" $1; shift
			i=$((i+1))
		done
		wait`, strings.Join(interfaces, " "), stormSize, lab.ProductBinary)
	stop := make(chan struct{})
	most := make(chan memory)
	go func() { most <- watchMemory(l.Guest.PID(), stop) }()
	start := time.Now()
	out := run(t, l, "sh", "-c", script)
	took := time.Since(start)
	close(stop)
	m := <-most
	t.Logf("%v; at most %d at a time, %d MiB together", took, m.processes, m.kib>>10)
	if out != "" {
		t.Logf("the hooks said:\n%s", out)
	}
	if n := strings.Count(out, "exit status"); n > stormFailures {
		t.Errorf("%d hooks failed", n)
	}
	if took > stormLimit {
		t.Errorf("took %v, want at most %v", took, stormLimit)
	}
	if m.kib > stormMemory {
		t.Errorf("%d KiB together, want at most %d", m.kib, stormMemory)
	}
	noLeftovers(t, l)
}

// noLeftovers checks that neither a process nor an unfinished file of the program's is left.
func noLeftovers(t *testing.T, l *lab.Lab) {
	t.Helper()
	if out := run(t, l, "find", stateDir, "-name", ".*", "-type", "f"); out != "" {
		t.Errorf("files are left: %s", out)
	}
	out, _ := l.Guest.Run(t.Context(), "pgrep", "-af", "^"+lab.ProductBinary) // fails if there is none
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(strings.TrimSpace(line), " check-in") { // the unit's
			t.Errorf("a process is left: %s", line)
		}
	}
}

// memory is what the program takes up in a guest: proportional set sizes, in which what processes share counts once.
type memory struct {
	processes int
	kib       int
}

// watchMemory returns the most that it sees until it is stopped.
func watchMemory(guest int, stop <-chan struct{}) (most memory) {
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid_for_children", guest))
	if err != nil {
		return memory{}
	}
	for {
		now := memoryIn(ns)
		most.processes, most.kib = max(most.processes, now.processes), max(most.kib, now.kib)
		select {
		case <-stop:
			return most
		case <-time.After(150 * time.Millisecond):
		}
	}
}

func memoryIn(ns string) (m memory) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if exe, _ := os.Readlink(dir + "/exe"); exe != lab.ProductBinary {
			continue
		}
		if in, _ := os.Readlink(dir + "/ns/pid"); in != ns {
			continue
		}
		if kib, ok := pss(dir + "/smaps_rollup"); ok {
			m.processes++
			m.kib += kib
		}
	}
	return m
}

func pss(name string) (kib int, ok bool) {
	f, err := os.Open(name)
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) > 1 && f[0] == "Pss:" {
			kib, err = strconv.Atoi(f[1])
			return kib, err == nil
		}
	}
	return 0, false // it has ended
}

// A storm while the WireServer is away: one hook hands over, and when it is back the unit sends one Ready.
func TestStormWhileAway(t *testing.T) {
	onSomeSuites(t, func(t *testing.T, suite string) {
		c := quiet()
		c.Systemd = true
		l := startProduct(t, suite, c)
		up(t, l, "eth0")
		anotherBoot(t, l, 1)
		l.Cloud.CloseWire()
		before := len(requests(t, l))
		storm(t, l, []string{"eth0"})
		logged(t, l, "handed-over")
		ok(t, l.Cloud.PlayWire(lab.WireScript{}))
		eventually(t, l, "the unit has checked in", isReady(l, bootID(1)))
		if got := requests(t, l)[before:]; readys(got) != 1 {
			t.Errorf("requests %v, want one Ready", got)
		}
	})
}

// readys counts the reports among requests to a server that accepts them.
func readys(requests []string) int {
	return count2(requests, health) + count2(requests, "POST /provisioning/health")
}

// Containers come and go: two thousand events of veths and their bridge through the real dispatcher.
func TestVeths(t *testing.T) {
	onSomeSuites(t, func(t *testing.T, suite string) {
		rounds, veths := 1, 40
		if everything() && suite == lab.Suites[1] {
			rounds, veths = 4, 160 // of some 500 events
		}
		l := startProduct(t, suite, quiet())
		up(t, l, "eth0")
		events, err := l.Guest.Events()
		ok(t, err)
		before := len(events)
		start := time.Now()
		for range rounds {
			run(t, l, "sh", "-ec", "ip link add docker0 type bridge; ip addr add 10.81.0.1/16 dev docker0; ip link set docker0 up")
			eventually(t, l, "the bridge is up", prints(l, "docker0:connected", "nmcli", "-g", "DEVICE,STATE", "device"))
			run(t, l, "sh", "-ec", fmt.Sprintf(`
				for i in $(seq %d); do
					echo "link add v$i type veth peer name w$i"
					echo "link set v$i master docker0 up"; echo "link set w$i up"
				done | ip -batch -`, veths))
			ok(t, l.Guest.Settle(t.Context()))
			run(t, l, "sh", "-ec", fmt.Sprintf(`for i in $(seq %d); do echo "link del v$i"; done | ip -batch -; ip link del docker0`, veths))
			ok(t, l.Guest.Settle(t.Context()))
		}
		events, err = l.Guest.Events()
		ok(t, err)
		t.Logf("%d events in %v", len(events)-before, time.Since(start))
		if n := len(events) - before; n < 3*veths*rounds {
			t.Errorf("%d events: this was to be a storm", n)
		}
		check(t, l, outcome{once, leaseDNS, pushedToo})
		noLeftovers(t, l)
	})
}
