package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// Daemons that misbehave while the hook runs: whatever one of them does, the run ends in time, and the job that does not
// need it is done.

// hookLimit is when the hook must be gone: five seconds, its hard stop a second later, and a busy machine.
const hookLimit = 7 * time.Second

// mishap is what happens to a daemon, and what a run of the hook makes of it.
type mishap struct {
	name   string
	before func(*testing.T, *lab.Lab) // it starts
	during func(*testing.T, *lab.Lab) // it runs, and the WireServer's answer is yet to come; nil: nothing
	pushed bool                       // that is: when the nameservers are configured
	after  func(*testing.T, *lab.Lab) // it has ended: the daemon is well again; nil: it is already
	source string                     // of the WireServer's address: "option-245", or "constant"
	fails  bool                       // it cannot tell how the nameservers stand, and says so
	dns    bool                       // the nameservers are configured
}

func signal(d lab.Daemon, sig unix.Signal) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		ok(t, l.Guest.Signal(t.Context(), d, sig))
	}
}

func kill(d lab.Daemon) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		ok(t, l.Guest.Kill(t.Context(), d))
	}
}

func restart(daemons ...lab.Daemon) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		for _, d := range daemons {
			_ = l.Guest.Stop(t.Context(), d) // it may be gone
			ok(t, l.Guest.Start(t.Context(), d))
		}
	}
}

// nothing is what happens where there is nothing to do.
func nothing(*testing.T, *lab.Lab) {}

// mishapsOf are those that every daemon can have: stopped or gone all the time, stopped for a while, killed or started
// again midway. without is a run for all of which the daemon does not answer, gone one for which it is not there: also one
// that is killed within the run's first second, since what is not done then the run does once more.
func mishapsOf(d lab.Daemon, without, gone mishap, fix func(*testing.T, *lab.Lab)) []mishap {
	midway := mishap{source: "option-245", dns: true}
	afterPush := midway
	afterPush.pushed = true
	of := func(m mishap, name string, before, during, after func(*testing.T, *lab.Lab)) mishap {
		m.name, m.before, m.during, m.after = name, before, during, after
		return m
	}
	return []mishap{
		of(without, "stopped", signal(d, unix.SIGSTOP), nil, signal(d, unix.SIGCONT)),
		of(midway, "stopped for half a second", signal(d, unix.SIGSTOP), signal(d, unix.SIGCONT), nil),
		of(gone, "stopped, then killed", signal(d, unix.SIGSTOP), kill(d), fix),
		of(gone, "killed", kill(d), nil, fix),
		of(afterPush, "killed midway", nothing, kill(d), fix),
		of(afterPush, "restarted midway", nothing, restart(d), fix),
	}
}

func TestMishaps(t *testing.T) {
	t.Parallel()
	blind := mishap{source: "constant", fails: true} // there is no lease to be read
	noDNS := mishap{source: "option-245", fails: true}
	quiet1 := mishap{source: "option-245"} // a machine without resolved is in order
	unheard := mishap{source: "option-245", dns: true}
	full := unheard
	full.name, full.before, full.after = "stopped, its queue full", fillJournal, signal(lab.Journald, unix.SIGCONT)
	// Those that are on the bus do not come back to one that was restarted.
	newBus := restart(lab.DBus, lab.Resolved, lab.NetworkManager)
	for d, mishaps := range map[lab.Daemon][]mishap{
		lab.NetworkManager: mishapsOf(lab.NetworkManager, blind, blind, restart(lab.NetworkManager)),
		lab.Resolved:       mishapsOf(lab.Resolved, noDNS, quiet1, restart(lab.Resolved)),
		lab.Journald:       append(mishapsOf(lab.Journald, unheard, unheard, restart(lab.Journald)), full),
		lab.DBus:           mishapsOf(lab.DBus, blind, blind, newBus),
	} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			onSomeSuites(t, func(t *testing.T, suite string) {
				l := startProduct(t, suite, quiet())
				up(t, l, "eth0")
				for i, m := range mishaps {
					t.Run(m.name, func(t *testing.T) { m.happen(t, l, i) })
				}
			})
		})
	}
}

// fillJournal stops journald, and writes to it until the kernel takes no more.
func fillJournal(t *testing.T, l *lab.Lab) {
	t.Helper()
	signal(lab.Journald, unix.SIGSTOP)(t, l)
	out, err := l.Guest.Run(t.Context(), "timeout", "1", "sh", "-c", `while printf 'MESSAGE=filler\n' | logger --journald; do :; done`)
	if err == nil || !strings.Contains(err.Error(), "exit status 124") {
		t.Fatalf("the queue is not full: %v %s", err, out)
	}
}

func (m mishap) happen(t *testing.T, l *lab.Lab, n int) {
	anotherBoot(t, l, n)
	script := lab.WireScript{}
	if m.during != nil {
		script.GoalState = []lab.WireStep{{Delay: 2 * time.Second}}
	}
	ok(t, l.Cloud.PlayWire(script))
	before, pushes := len(requests(t, l)), strings.Count(strings.Join(kinds(t, l), " "), "nameservers-pushed")
	m.before(t, l)
	done := background(l, "reapply", "eth0")
	if m.during != nil {
		if m.pushed {
			eventually(t, l, "the nameservers are configured", func(context.Context) error {
				if n := strings.Count(strings.Join(kinds(t, l), " "), "nameservers-pushed"); n == pushes {
					return errors.New("no entry says so")
				}
				return nil
			})
		} else {
			time.Sleep(500 * time.Millisecond) // into the run: nothing can be waited for
		}
		m.during(t, l)
	}
	r := <-done
	t.Logf("%v: %v", r.took, r.err)
	if r.took > hookLimit {
		t.Errorf("took %v, want at most %v", r.took, hookLimit)
	}
	rec := checkInRecord(t, l)
	if rec.State != "ready" || rec.Source != m.source {
		t.Errorf("check-in is %s by %s, want ready by %s", rec.State, rec.Source, m.source)
	}
	if got := requests(t, l)[before:]; count2(got, health) != 1 {
		t.Errorf("requests %v, want one Ready", got)
	}
	if failed := r.err != nil; failed != m.fails {
		t.Errorf("exit status: %v, failure wanted: %v", r.err, m.fails)
	}
	if m.after != nil {
		m.after(t, l)
	}
	if m.dns { // one that was started again may not answer yet
		eventually(t, l, "the nameservers are configured", becomes(l, leaseDNS))
	}

	if m.fails {
		logged(t, l, "nameservers-failed")
	}

	// What could not be done the next event does, and it does nothing twice.
	ok(t, l.Connected(t.Context(), "eth0"))
	eventually(t, l, "the next event does the rest", func(context.Context) error {
		return (<-background(l, "reapply", "eth0")).err // a NetworkManager that has just started may be busy
	})
	allDNS(t, l)
	if got := requests(t, l)[before:]; count2(got, health) != 1 {
		t.Errorf("requests after the next event %v, want one Ready", got)
	}
	if t.Failed() {
		t.Log(l.Dump(t.Context()))
	}
}

// nm-dispatcher is stopped, or ends, while the hook runs that it has started: the hook continues.
func TestDispatcherMishaps(t *testing.T) {
	t.Parallel()
	for _, sig := range []string{"STOP", "KILL"} {
		t.Run(sig, func(t *testing.T) {
			t.Parallel()
			onSomeSuites(t, func(t *testing.T, suite string) {
				l := startProduct(t, suite, quiet())
				up(t, l, "eth0")
				anotherBoot(t, l, 1)
				before := len(requests(t, l))
				ok(t, l.Cloud.PlayWire(lab.WireScript{GoalState: []lab.WireStep{{Delay: 2 * time.Second}}}))
				run(t, l, "nmcli", "device", "reapply", "eth0")
				eventually(t, l, "the hook has asked", func(context.Context) error {
					if n := len(requests(t, l)) - before; n == 0 {
						return errors.New("no request")
					}
					return nil
				})
				run(t, l, "sh", "-c", "kill -"+sig+" $(pidof nm-dispatcher)")
				eventually(t, l, "it has checked in", isReady(l, bootID(1)))
				eventually(t, l, "the nameservers are configured", prints(l, leaseDNS, "resolvectl", "dns", "eth0"))
				if sig == "STOP" {
					run(t, l, "sh", "-c", "kill -CONT $(pidof nm-dispatcher)")
				}
				ok(t, l.Guest.Settle(t.Context()))
				if got := requests(t, l)[before:]; count2(got, health) != 1 {
					t.Errorf("requests %v, want one Ready", got)
				}
			})
		})
	}
}

// logged waits for an entry of a kind: journald may be a little behind.
func logged(t *testing.T, l *lab.Lab, kind string) {
	t.Helper()
	eventually(t, l, "the journal has "+kind, func(context.Context) error {
		if !slices.Contains(kinds(t, l), kind) {
			return errors.New("it has not")
		}
		return nil
	})
}

// allDNS demands of resolved all that there is to push to it.
func allDNS(t *testing.T, l *lab.Lab) {
	t.Helper()
	if got := linkDNS(t, l, "eth0"); got != leaseDNS {
		t.Errorf("nameservers %q, want %q", got, leaseDNS)
	}
	if out := run(t, l, "resolvectl", "domain", "eth0"); !strings.HasSuffix(out, "): "+leaseDomain) {
		t.Errorf("domains %q, want %s", out, leaseDomain)
	}
}

const leaseDomain = "lab.internal.cloudapp.net"

// ran is a run of the hook that has ended.
type ran struct {
	took time.Duration
	err  error // of the exit status, with standard error
}

// background starts the hook as the dispatcher does.
func background(l *lab.Lab, action, nic string) <-chan ran {
	done := make(chan ran, 1)
	start := time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := l.Guest.Run(ctx, "env", "-i", "NM_DISPATCHER_ACTION="+action, "DHCP4_IP_ADDRESS=10.77.0.100", lab.ProductBinary, nic, action)
		done <- ran{time.Since(start), err}
	}()
	return done
}

// anotherBoot makes a machine on which everything is yet to do.
func anotherBoot(t *testing.T, l *lab.Lab, n int) {
	t.Helper()
	ok(t, l.Guest.Settle(t.Context()))
	ok(t, l.Guest.SetBootID(bootID(n)))
	run(t, l, "resolvectl", "revert", "eth0")
	if got := linkDNS(t, l, "eth0"); got != "" {
		t.Fatalf("eth0 still has %s", got)
	}
}

func bootID(n int) string { return fmt.Sprintf("b0070000-0000-4000-8000-%012d", n) }

// isReady reports whether there is a record of that boot that says ready.
func isReady(l *lab.Lab, boot string) func(context.Context) error {
	return func(context.Context) error {
		var rec record
		text, err := l.Guest.ReadFile(stateDir + "/check-in.json")
		if err == nil {
			err = json.Unmarshal([]byte(text), &rec)
		}
		if err == nil && (rec.BootID != boot || rec.State != "ready") {
			err = fmt.Errorf("%s in boot %s", rec.State, rec.BootID)
		}
		return err
	}
}

// stateDir is where the records are.
const stateDir = "/run/nm-azure-dispatch"

// record is as much of a record as the tests look at.
type record struct {
	BootID    string `json:"boot_id"`
	State     string
	Source    string
	Via       string
	Attempts  int
	LastError string `json:"last_error"`

	WireServer string
}

func checkInRecord(t *testing.T, l *lab.Lab) record {
	t.Helper()
	var rec record
	text, err := l.Guest.ReadFile(stateDir + "/check-in.json")
	ok(t, err)
	ok(t, json.Unmarshal([]byte(text), &rec))
	return rec
}
