package lab_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// State that misbehaves: whatever is where the records should be, both jobs are done, and nothing is written elsewhere.

// mess is something in the way of the records. The commands are the shell's, in the state directory's parent; $D is the
// state directory, $E a directory elsewhere, and 2 the index of eth0.
type mess struct {
	name string
	make string
	fix  string // what the administrator does; "": nothing has to be done
	// twice says that no record of the check-in can be kept, so that the next event sends Ready again.
	twice bool
	// nods says that the program says why, in the journal.
	says string
}

var messes = []mess{
	{
		name: "/run full", make: `mount -o remount,size=16m /run; dd if=/dev/zero of=/run/filler bs=4k 2>/dev/null || :; [ $(df --output=avail /run | tail -n 1) = 0 ]`,
		fix: `rm /run/filler; mount -o remount,size=50% /run`, twice: true, says: "no space left on device",
	},
	{
		name: "/run without inodes", make: `mount -o remount,nr_inodes=$(($(df --output=iused /run | tail -n 1) + 50)) /run
			mkdir filler; i=0; while (: >filler/$i) 2>/dev/null; do i=$((i+1)); done`,
		fix: `rm -r filler; mount -o remount,nr_inodes=500k /run`, twice: true, says: "no space left on device",
	},
	{
		name: "/run read-only", make: `mount --bind /run /run; mount -o remount,bind,ro /run`,
		fix: `umount -l /run`, twice: true, says: "read-only file system",
	},
	{name: "record empty", make: `mkdir $D; : >$D/check-in.json`},
	{name: "record torn", make: `mkdir $D; printf '{"boot_id":"%s","state":"rea' $BOOT >$D/check-in.json`},
	{name: "record of another boot", make: `mkdir $D; echo '{"boot_id":"b0070000-0000-4000-8000-00000000ffff","state":"ready"}' >$D/check-in.json`},
	{name: "record of 100 MB", make: `mkdir $D; dd if=/dev/zero of=$D/check-in.json bs=1M count=100 2>/dev/null`},
	{name: "record a directory", make: `mkdir -p $D/check-in.json/x`, twice: true, says: "check-in.json is a directory"},
	{name: "record a FIFO", make: `mkdir $D; mkfifo $D/check-in.json`, twice: true, says: "check-in.json is a FIFO"},
	{
		name: "record a link to a good one elsewhere", twice: true, says: "check-in.json is a symbolic link",
		make: `mkdir $D; printf '{"boot_id":"%s","state":"ready"}' $BOOT >$E/record; ln -s $E/record $D/check-in.json`,
	},
	{
		name: "record that anyone could have written", twice: true, says: "others can write to it",
		make: `mkdir $D; printf '{"boot_id":"%s","state":"ready"}' $BOOT >$D/check-in.json; chmod 666 $D/check-in.json`,
	},
	{
		name: "record of a user's", twice: true, says: "belongs to user 65534",
		make: `mkdir $D; printf '{"boot_id":"%s","state":"ready"}' $BOOT >$D/check-in.json; chown nobody $D/check-in.json`,
	},
	{name: "lock with something in it", make: `mkdir $D; echo 1 >$D/check-in.lock`},
	{name: "lock a directory", make: `mkdir -p $D/check-in.lock`, says: "check-in.lock is a directory"},
	{name: "lock a FIFO", make: `mkdir $D; mkfifo $D/check-in.lock`, says: "check-in.lock is a FIFO"},
	{name: "lock a link elsewhere", make: `mkdir $D; : >$E/lock; ln -s $E/lock $D/check-in.lock`, says: "check-in.lock is a symbolic link"},
	{name: "lock a link to nowhere", make: `mkdir $D; ln -s $E/new $D/check-in.lock`, says: "check-in.lock is a symbolic link"},
	{name: "directory a file", make: `: >$D`, twice: true, says: "nm-azure-dispatch is a regular file"},
	{name: "directory a link elsewhere", make: `ln -s $E $D`, twice: true, says: "nm-azure-dispatch is a symbolic link"},
	{name: "directory that all can write to", make: `mkdir $D; chmod 777 $D`, twice: true, says: "others can write to it"},
	{name: "directory of a user's", make: `mkdir $D; chown nobody $D`, twice: true, says: "belongs to user 65534"},
	{name: "links a file", make: `mkdir $D; : >$D/links`, says: "links is a regular file"},
	{name: "links a link elsewhere", make: `mkdir $D; ln -s $E $D/links`, says: "links is a symbolic link"},
	{name: "link's record torn", make: `mkdir -p $D/links; printf '{"boot_id":"%s","interface":"eth0","state":"pus' $BOOT >$D/links/2.json`},
	{name: "link's record a lie", make: `mkdir -p $D/links; printf '{"boot_id":"%s","interface":"eth0","state":"pushed","nameservers":["192.0.2.1"]}' $BOOT >$D/links/2.json`},
	{name: "link's lock and place in the queue directories", make: `mkdir -p $D/links/2.lock $D/links/2.next`, says: "2.lock is a directory"},
	{
		name: "a user holds every lock, and every file that there is open",
		make: `mkdir -p $D/links; for f in check-in.json check-in.lock links/2.json links/2.lock links/2.next; do echo '{}' >$D/$f; done; chmod 600 $D/*.lock $D/links/*.lock $D/links/*.next
			find $D | while read f; do setpriv --reuid=65534 --regid=65534 --clear-groups flock $f sleep 60 >/dev/null 2>&1 & done
			sleep 0.3; [ $(pgrep -c -u nobody flock) -ge 4 ]`,
		fix: `pkill -u nobody`,
	},
}

func TestMesses(t *testing.T) {
	t.Parallel()
	onSomeSuites(t, func(t *testing.T, suite string) {
		l := startProduct(t, suite, quiet())
		up(t, l, "eth0")
		for i, m := range messes {
			t.Run(m.name, func(t *testing.T) { m.happen(t, l, i) })
		}
	})
}

func (m mess) happen(t *testing.T, l *lab.Lab, n int) {
	anotherBoot(t, l, n)
	shell := func(script string) string {
		return run(t, l, "sh", "-ec", fmt.Sprintf("D=%s; E=/elsewhere; BOOT=%s; cd /run\n%s", stateDir, bootID(n), script))
	}
	shell("rm -rf $D $E; mkdir $E; echo mine >$E/file")
	shell(m.make)
	elsewhere := func() string {
		return shell("cd /; find $E ! -type d -exec stat -c '%n %Y %Z %a %U %s' {} +; ls -ld $E; cat $E/*")
	}
	if m.fix != "" {
		defer shell(m.fix)
	}
	before, there := len(requests(t, l)), elsewhere()
	seen := len(entries(t, l))
	for i := range 2 {
		r := <-background(l, "reapply", "eth0")
		if r.err != nil || r.took > hookLimit {
			t.Errorf("run %d: %v after %v", i+1, r.err, r.took)
		}
		allDNS(t, l)
	}
	want := 1
	if m.twice {
		want = 2
	}
	if got := requests(t, l)[before:]; count2(got, health) != want {
		t.Errorf("requests %v, want %d Readys", got, want)
	}
	if now := elsewhere(); now != there {
		t.Errorf("elsewhere there was\n%s\nnow there is\n%s", there, now)
	}
	if m.says != "" && !said(entries(t, l)[seen:], "record-failed", m.says) {
		t.Errorf("no entry record-failed says %q: %+v", m.says, entries(t, l)[seen:])
	}
}

func said(entries []entry, kind, text string) bool {
	for _, e := range entries {
		if kindOf(e.ID) == kind && strings.Contains(e.Message, text) {
			return true
		}
	}
	return false
}

// A run is killed at any moment; the next event does what is left to do.
func TestKilled(t *testing.T) {
	t.Parallel()
	const kills = 50
	onSomeSuites(t, func(t *testing.T, suite string) {
		l := startProduct(t, suite, quiet())
		up(t, l, "eth0")
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		killed := 0
		for i := range kills {
			anotherBoot(t, l, i)
			slow := time.Duration(rnd.IntN(10)) * time.Millisecond
			script := lab.WireScript{GoalState: []lab.WireStep{{Delay: slow}}, Health: []lab.WireStep{{Delay: slow}}}
			ok(t, l.Cloud.PlayWire(script))
			before := len(requests(t, l))
			after := time.Duration(1+rnd.IntN(45)) * time.Millisecond
			_, err := l.Guest.Run(t.Context(), "timeout", "-s", "KILL", fmt.Sprint(after.Seconds()),
				"env", "-i", "NM_DISPATCHER_ACTION=reapply", "DHCP4_IP_ADDRESS=10.77.0.100", lab.ProductBinary, "eth0", "reapply")
			if err != nil {
				killed++
			}
			if r := <-background(l, "reapply", "eth0"); r.err != nil {
				t.Errorf("killed after %v: the next event: %v", after, r.err)
			}
			ok(t, isReady(l, bootID(i))(context.Background()))
			// Killed between Ready and record: then it is sent again, which is harmless.
			if got := count2(requests(t, l)[before:], health); got < 1 || got > 2 {
				t.Errorf("killed after %v: %d Readys", after, got)
			}
			allDNS(t, l)
			noLeftovers(t, l)
		}
		t.Logf("%d of %d were killed before they had ended", killed, kills)
		if killed < kills/4 {
			t.Errorf("%d of %d were killed before they had ended: too few to show anything", killed, kills)
		}
	})
}
