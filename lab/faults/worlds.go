package faults

import (
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// retry is the longest pause of the first five minutes, with jitter: so late after the server is well again the next
// attempt can be.
const retry = 1100 * ms

var curlLate = Peer{"curl --retry", 10 * time.Second}

// networks are faults of what lies between, and servers that come up late.
func networks() []Case {
	// A failed attempt a second, for more than four minutes: nothing may pile up.
	busy := wiretest.Script{GoalState: []wiretest.Step{status(503)}, Provisioning: []wiretest.Step{status(503)}}
	busy.GoalState[0].Times, busy.Provisioning[0].Times = 140, 140
	all := []Case{
		{Name: "503 for more than 4 minutes", Script: busy, Start: Start{Timeout: 10 * time.Minute}, Want: Want{Within: 5 * time.Minute}},
		{Name: "refused for 2 minutes", World: World{Refused: 2 * time.Minute}, Want: Want{Within: 2*time.Minute + retry}},
		{Name: "refused for 10 s", World: World{Refused: 10 * time.Second}, Want: Want{Within: 10*time.Second + retry, Says: "connection refused"}, Peer: curlLate},
		{Name: "no route for 10 s", World: World{NoRoute: 10 * time.Second}, Want: Want{Within: 10*time.Second + retry, Says: "network is unreachable"}, Peer: curlLate},
		{Name: "packets lost for 10 s", World: World{Lost: 10 * time.Second}, Want: Want{Within: 10*time.Second + 2*time.Second + retry, Says: "i/o timeout"}},
	}
	for i := range all {
		all[i].Group = "The network, and servers that come up late"
	}
	return all
}

// constant is the default address of the WireServer; other is one that a lease has instead.
const (
	constant = "168.63.129.16"
	other    = "10.77.9.16"
	leased   = "a8:3f:81:10"
	leasedTo = "0a:4d:09:10" // other
)

// hooks are runs of the dispatcher hook, which reads option 245 of NetworkManager's lease over the bus.
func hooks() []Case {
	web := everywhere(status(404))
	silence := everywhere(hang)
	// There is no systemd here to hand over to: after a second the hook starts again.
	all := []Case{
		{Name: "hook: no fault", World: World{Option245: leased}, Want: Want{Via: "health", Requests: []string{get, post}}, Peer: atOnce},
		{Name: "hook: nobody listens at option 245's address", World: World{Option245: leasedTo}, Want: Want{Within: 250 * ms, Via: "health"}},
		{Name: "hook: packets to option 245's address vanish", World: World{Option245: leasedTo, OtherLost: true}, Want: Want{Within: 3250 * ms, Via: "health"}},
		{Name: "hook: a web server at option 245's address", World: World{Option245: leasedTo, Other: &web}, Want: Want{Within: 250 * ms, Via: "health"}},
		{Name: "hook: silence at option 245's address", World: World{Option245: leasedTo, Other: &silence}, Want: Want{Within: 4 * time.Second, Via: "health"}},
		{Name: "hook: a WireServer at option 245's other address", World: World{Option245: leasedTo, Other: &wiretest.Script{}}, Want: Want{Via: "health", Server: other}},
		{Name: "hook: option 245 is the machine's own address", World: World{Option245: "0a:00:00:04"}, Want: Want{Via: "health", Says: "an address of this machine"}},
		{Name: "hook: option 245 is 127.0.0.1", World: World{Option245: "7f:00:00:01"}, Want: Want{Via: "health", Says: "loopback"}},
		{
			Name: "hook: nothing is answered, ever", World: World{Option245: leased}, Script: silence,
			Want: Want{Never: true, Status: 1, Within: 5 * time.Second, Says: journal.GivenUp.Message},
		},
	}
	for i := range all {
		all[i].Group, all[i].Start.Hook = "The dispatcher hook, and option 245", true
	}
	return all
}

// environments are what a program can be started in.
func environments() []Case {
	proxy := []string{
		"http_proxy=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9", "all_proxy=socks5://127.0.0.1:9",
		"ALL_PROXY=socks5://127.0.0.1:9", "no_proxy=", "REQUEST_METHOD=",
	}
	odd := []string{"PATH=", "HOME=", "TMPDIR=/nonexistent", "LANG=xx_XX.UTF-8", "TZ=Nowhere/Never", "COLUMNS=-1", "=", "NO_EQUALS_SIGN"}
	const (
		noReader = `mkfifo /run/pipe; exec 3<>/run/pipe 2>/run/pipe 3>&-; exec "$@"`
		full     = `mkfifo /run/pipe; exec 2<>/run/pipe; dd if=/dev/zero of=/run/pipe bs=4096 oflag=nonblock 2>/dev/null; exec "$@"`
	)
	fault := wiretest.Script{GoalState: []wiretest.Step{status(503), status(503)}} // so that something is said
	all := []Case{
		{Name: "proxies in the environment", Start: Start{Env: proxy}, Want: Want{Requests: []string{get, post}}},
		{Name: "an odd environment", Start: Start{Env: odd}, Want: Want{Requests: []string{get, post}}},
		{Name: "no environment, directory removed", Start: Start{Shell: `mkdir /run/gone && cd /run/gone && rmdir /run/gone && exec "$@"`}, Want: Want{Requests: []string{get, post}}},
		{Name: "standard input, output and error closed", Start: Start{Shell: `exec "$@" <&- >&- 2>&-`}, Script: fault, Want: Want{Within: 750 * ms, Mute: true}},
		{Name: "standard input closed", Start: Start{Shell: `exec "$@" <&-`}, Script: fault, Want: Want{Within: 750 * ms}},
		{Name: "standard error closed", Start: Start{Shell: `exec "$@" 2>&-`}, Script: fault, Want: Want{Within: 750 * ms, Mute: true}},
		{Name: "standard error is a pipe without a reader", Start: Start{Shell: noReader}, Script: fault, Want: Want{Within: 750 * ms, Mute: true}},
		{Name: "standard error is a pipe that is full", Start: Start{Shell: full}, Script: fault, Want: Want{Within: 750*ms + time.Second, Mute: true}},
		{
			Name: "standard error is full, and no success", Start: Start{Shell: full, Timeout: 2 * time.Second}, Script: everywhere(status(503)),
			Want: Want{Never: true, Status: 1, Within: 4 * time.Second, Mute: true},
		},
		{
			Name: "hook: standard error is full, and no success", World: World{Option245: leased}, Start: Start{Hook: true, Shell: full}, Script: everywhere(status(503)),
			Want: Want{Never: true, Status: 1, Within: 6500 * ms, Mute: true},
		},
		{Name: "standard output is full", Start: Start{Shell: `exec "$@" >/dev/full`}, Want: Want{Requests: []string{get, post}}},
		{Name: "16 open files", Start: Start{Shell: `ulimit -n 16; exec "$@"`}, Script: fault, Want: Want{Within: 750 * ms}},
		{Name: "hook: 16 open files", World: World{Option245: leased}, Start: Start{Hook: true, Shell: `ulimit -n 16; exec "$@"`}},
		{Name: "umask 0777", Start: Start{Shell: `umask 0777; exec "$@"`}, Script: fault, Want: Want{Within: 750 * ms}},
		{Name: "signals ignored", Start: Start{Shell: `trap "" HUP INT TERM PIPE CHLD USR1 USR2 ALRM; exec "$@"`}, Script: fault, Want: Want{Within: 750 * ms}},
		{Name: "no file may grow", Start: Start{Shell: `ulimit -f 0; exec "$@"`}, Script: fault, Want: Want{Within: 750 * ms, NoHost: true, Says: journal.RecordFailed.Message}},
	}
	const nobody = `exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"`
	refused := Want{Never: true, NoHost: true, Status: 1, Requests: []string{}, Says: "only root can do that"}
	all = append(
		all,
		Case{Name: "a user's check-in", Start: Start{Shell: nobody}, Want: refused},
		Case{Name: "hook: a user's", World: World{Option245: leased}, Start: Start{Hook: true, Shell: nobody}, Want: refused},
	)
	for i := range all {
		all[i].Group = "Odd environments"
	}
	return all
}
