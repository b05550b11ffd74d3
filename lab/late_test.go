package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// How much later things happen because of the hook and its hand-over, compared in one guest with what would be without:
// a time alone depends on what else the machine does.

// lateRounds is how often each is measured at most. One that is not late is measured again only for make faults.
const lateRounds = 4

func median(times []time.Duration) time.Duration {
	times = slices.Sorted(slices.Values(times))
	return times[len(times)/2]
}

// wireAways are the ways in which the WireServer can be away.
var wireAways = map[string]func(*testing.T, *lab.Lab){
	"refuses": func(t *testing.T, l *lab.Lab) { l.Cloud.CloseWire() },
	"hangs": func(t *testing.T, l *lab.Lab) {
		hang := []lab.WireStep{{Times: -1, Hang: true}}
		ok(t, l.Cloud.PlayWire(lab.WireScript{GoalState: hang, Health: hang, Provisioning: hang}))
	},
}

// startByHand makes a guest with units whose NICs NetworkManager does not connect by itself.
func startByHand(t *testing.T, suite string, nics ...string) *lab.Lab {
	t.Helper()
	c := withUnits(quiet())
	c.NICs = nics
	for _, nic := range nics {
		c.Profiles = append(c.Profiles, lab.Profile{ID: nic, Settings: []string{"connection.autoconnect=false"}})
	}
	c.Leases = map[string]lab.Lease{"eth1": lab.AzureLease().Without(lab.OptRouter).WithRoutes(map[string]string{"10.78.0.0/16": lab.Gateway})}
	return startProduct(t, suite, c)
}

// nextBoot disconnects the NICs and makes a boot in which nothing is done yet.
func nextBoot(t *testing.T, l *lab.Lab, n int) {
	t.Helper()
	_, _ = l.Guest.Run(t.Context(), "nmcli", "device", "disconnect", "eth0", "eth1") // fails for those that are
	run(t, l, "systemctl", "stop", unit)
	anotherBoot(t, l, n)
}

// connectFirst connects eth0 and waits until the dispatcher starts the scripts of its first event.
const connectFirst = `events() { grep -c '00-lab-begin dhcp4-change eth0' /lab/events || :; }
	before=$(events)
	nmcli -w 0 connection up eth0
	until [ $(events) -gt $before ]; do sleep 0.01; done
`

// connectSecond connects eth1 after that, and prints how long it took, in microseconds.
const connectSecond = connectFirst + `start=$EPOCHREALTIME
	nmcli -w 60 connection up eth1 >/dev/null
	end=$EPOCHREALTIME
	echo $((${end/./} - ${start/./}))`

// Scripts in the place of the hook. The hook is to delay others by 1.3 s at most; one that did not hand over would by five.
const (
	idle    = "#!/bin/sh\n"
	sleeper = "#!/bin/sh\n[ \"$1 $2\" != 'eth0 dhcp4-change' ] || sleep 2\n"
)

// The WireServer is away while interfaces come up. The hook hands over, so that another interface is activated sooner than
// beside a script that takes two seconds, and the unit checks in when the WireServer is back.
func TestHandOver(t *testing.T) {
	t.Parallel()
	for name, away := range wireAways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				l := startByHand(t, suite, "eth0", "eth1")
				away(t, l)
				hook, err := l.Guest.ReadFile(gatePath)
				ok(t, err)
				scripts := []string{sleeper, hook} // the hook is the last one
				if everything() {
					scripts = []string{idle, sleeper, hook}
				}
				beside := map[string][]time.Duration{}
				n := 0
				late := true
				for i := 0; i < lateRounds && (late || everything()); i++ {
					for _, script := range scripts {
						n++
						beside[script] = append(beside[script], activation(t, l, n, script))
					}
					late = median(beside[hook]) >= median(beside[sleeper])
				}
				t.Logf("eth1 took %v beside the hook, %v beside a script of 2 s, %v alone", beside[hook], beside[sleeper], beside[idle])
				if late {
					t.Errorf("eth1 took %v beside the hook, %v beside a script of 2 s", beside[hook], beside[sleeper])
				}
				find(t, l, "handed-over")
				if got := linkDNS(t, l, "eth0"); got != leaseDNS {
					t.Errorf("nameservers %q meanwhile, want %q", got, leaseDNS)
				}

				before := len(requests(t, l))
				ok(t, l.Cloud.PlayWire(lab.WireScript{}))
				eventually(t, l, "the unit has checked in", isReady(l, bootID(n)))
				if got := requests(t, l)[before:]; readys(got) != 1 {
					t.Errorf("requests %v, want one Ready", got)
				}
			})
		})
	}
}

// activation connects eth0, with a script in the place of the hook, and eth1 as soon as eth0's first event is there. It
// returns how long eth1 took.
func activation(t *testing.T, l *lab.Lab, n int, script string) time.Duration {
	t.Helper()
	nextBoot(t, l, n)
	ok(t, l.Guest.WriteFile(gatePath, script, 0o755))
	us, err := strconv.Atoi(run(t, l, "bash", "-ec", connectSecond))
	ok(t, err)
	ok(t, l.Guest.Settle(t.Context()))
	return time.Duration(us) * time.Microsecond
}

// alone is a dispatcher script that starts a check-in as the hook starts. It has records of its own and no limit of time, and
// leaves its record in aloneRecord.
const (
	alonePath   = "/usr/lib/NetworkManager/dispatcher.d/no-wait.d/91-alone"
	aloneRecord = "/run/alone.json"
	alone       = `#!/bin/sh
[ "$1 $2" = "eth0 dhcp4-change" ] || exit 0
mkdir -p ` + stateDir + `
unshare -m sh -ec 'mount -t tmpfs -o mode=755 none ` + stateDir + `
	` + lab.ProductBinary + ` check-in --server ` + lab.Other + `
	cat ` + stateDir + `/check-in.json >` + aloneRecord + `' >/dev/null 2>&1 </dev/null &
`
)

// The WireServer is back two, three and four seconds after the lease: hook and unit together are Ready as soon as one process
// without a limit. The goal is 100 ms. Both wait a second between attempts, give or take a tenth, so that a single time says little.
func TestHandOverIsNotLate(t *testing.T) {
	t.Parallel()
	for name, away := range wireAways {
		if name != "refuses" && !everything() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onSomeSuites(t, func(t *testing.T, suite string) {
				l := startByHand(t, suite, "eth0")
				ok(t, l.Guest.WriteFile(alonePath, alone, 0o755))
				ok(t, l.Guest.Symlink("no-wait.d/91-alone", "/usr/lib/NetworkManager/dispatcher.d/91-alone"))
				var late []time.Duration
				for i := 0; i < lateRounds && (i == 0 || median(late) > time.Second || everything()); i++ {
					for after := 2 * time.Second; after <= 4*time.Second; after += time.Second {
						n := len(late)
						nextBoot(t, l, n)
						away(t, l)
						run(t, l, "sh", "-ec", "rm -f "+aloneRecord+"\n"+connectFirst)
						time.Sleep(after)
						ok(t, l.Cloud.PlayWire(lab.WireScript{}))
						late = append(late, lateness(t, l, n))
					}
				}
				t.Logf("hook and unit were Ready later by %v", late)
				if median(late) > time.Second {
					t.Errorf("hook and unit were Ready later by %v", late)
				}
				find(t, l, "handed-over")
			})
		})
	}
}

// lateness waits until both are Ready, and returns how much later hook and unit are than the process alone.
func lateness(t *testing.T, l *lab.Lab, n int) time.Duration {
	t.Helper()
	eventually(t, l, "the unit is Ready", isReady(l, bootID(n)))
	at := func(name string) (ms int64, err error) {
		text, err := l.Guest.ReadFile(name)
		if err != nil {
			return 0, err
		}
		var rec struct {
			AfterBootMS int64 `json:"after_boot_ms"`
		}
		err = json.Unmarshal([]byte(text), &rec)
		return rec.AfterBootMS, err
	}
	var both, one int64
	eventually(t, l, "the process alone is Ready", func(context.Context) (err error) {
		var err2 error
		both, err = at(stateDir + "/check-in.json")
		one, err2 = at(aloneRecord)
		return errors.Join(err, err2)
	})
	return time.Duration(both-one) * time.Millisecond
}
