package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/kvp"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

func target(addr string) dispatch.Target {
	return dispatch.Target{Server: netip.MustParseAddr(addr), Source: boot.FromOption245, Interface: "eth0"}
}

// The report continues at the address that is found later; attempts and the time
// of the start are those of both.
func TestNewTargetIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		c := w.checkIn(t)
		targets := make(chan dispatch.Target)
		c.NextTarget = func(ctx context.Context, _ netip.Addr) (dispatch.Target, bool) {
			select {
			case next := <-targets:
				return next, true
			case <-ctx.Done():
				return dispatch.Target{}, false
			}
		}
		c.Report = func(ctx context.Context, r *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
			w.say("report to %s, fallback %s", r.Server, r.Fallback)
			if r.Server == otherServer.Server {
				return wire.Outcome{Attempt: wire.Attempt{Server: r.Server, Via: wire.ViaHealth}, Attempts: 1}, nil
			}
			r.OnAttempt(wire.Attempt{Server: r.Server, Err: errors.New("refused")})
			<-ctx.Done()
			return wire.Outcome{Attempts: 4}, fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		started := time.Now()
		time.AfterFunc(time.Minute, func() {
			if rec, err := w.records.CheckIn(); err != nil || rec.State != boot.Trying || rec.Attempts != 1 {
				t.Errorf("after a minute: %+v, %v", rec, err)
			}
			targets <- otherServer
		})
		rec, err := c.Run(t.Context(), dispatch.DefaultTarget("", "there is no DHCPv4 lease"), wire.Ready(), false)
		if err != nil || rec.State != boot.Ready || rec.Attempts != 5 || !rec.StartedAt.Equal(started) ||
			rec.Source != boot.FromOption245 || rec.WireServer != "100.64.0.7" || rec.Interface != "eth0" {
			t.Errorf("record %+v, %v", rec, err)
		}
		want := []string{"report to 168.63.129.16, fallback invalid IP", "report to 100.64.0.7, fallback 168.63.129.16"}
		if got := slices.DeleteFunc(w.did, func(s string) bool { return !strings.HasPrefix(s, "report") }); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// An hour of failures is one report: looking the address up again starts it again
// only where it has changed.
func TestLookingAgainIsNoNewReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		c := w.checkIn(t)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errors.New("stopped"))
		defer cancel()
		var looks atomic.Int32
		reports := 0
		c.NextTarget = func(ctx context.Context, current netip.Addr) (dispatch.Target, bool) {
			return dispatch.NextTarget(ctx, current, nil, func(context.Context) (dispatch.Target, bool) {
				looks.Add(1)
				return otherServer, true
			})
		}
		c.Report = func(ctx context.Context, _ *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
			reports++
			<-ctx.Done()
			return wire.Outcome{}, context.Cause(ctx)
		}
		if _, err := c.Run(ctx, otherServer, wire.Ready(), false); err == nil || err.Error() != "stopped" {
			t.Errorf("error %v", err)
		}
		if n := looks.Load(); reports != 1 || n < 119 || n > 120 {
			t.Errorf("%d reports, %d looks; want one, and a look each half minute", reports, n)
		}
	})
}

func TestNextTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := make(chan struct{}, 1)
		current := netip.MustParseAddr("10.0.0.1")
		found, known, looks := target("10.0.0.1"), true, 0
		next := func() string {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Second)
			defer cancel()
			start := time.Now()
			looks = 0
			got, ok := dispatch.NextTarget(ctx, current, changes, func(context.Context) (dispatch.Target, bool) {
				looks++
				return found, known
			})
			if !ok {
				return "none"
			}
			current = got.Server
			return fmt.Sprint(got.Server, " after ", time.Since(start))
		}
		if got := next(); got != "none" || looks != 2 { // the same server
			t.Errorf("%s, %d looks", got, looks)
		}
		found, known = target("10.0.0.2"), false // no lease can be read: the target stays
		changes <- struct{}{}
		if got := next(); got != "none" {
			t.Error(got)
		}
		known = true
		for range 50 { // many changes at once are one look
			select {
			case changes <- struct{}{}:
			default:
			}
		}
		if got := next(); got != "10.0.0.2 after 200ms" || looks != 1 {
			t.Errorf("%s, %d looks", got, looks)
		}
		found = target("10.0.0.3") // without a change of routes
		if got := next(); got != "10.0.0.3 after 30s" {
			t.Error(got)
		}
	})
}

// What the host reads after each step of a check-in: never success from a failed
// attempt on until the next POST.
func TestHostRecordIsTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := filepath.Join(t.TempDir(), "pool")
		if err := os.WriteFile(pool, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		host := &kvp.Reporter{Path: pool, Agent: "test", BootID: bootID}
		w := &world{}
		c := w.checkIn(t)
		c.TellHost = host.Report
		expect := func(step, want string) {
			t.Helper()
			got, err := os.ReadFile(pool)
			if err != nil || !strings.Contains(string(got), want) {
				t.Errorf("%s: %.200q, %v; want %s", step, strings.ReplaceAll(string(got), "\x00", ""), err, want)
			}
		}
		failed := func(r *wire.Reporter, posted bool, text string) {
			r.OnAttempt(wire.Attempt{Server: r.Server, Via: wire.ViaHealth, Posted: posted, Err: errors.New(text)})
		}
		accept := false
		c.Report = func(ctx context.Context, r *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
			for n := range 3 { // the same cause each time, and each time a POST before it
				failed(r, false, "wire: GET: refused")
				expect(fmt.Sprint(n, ": goal state refused"), "result=error|reason=wire: GET: refused|")
				r.BeforePost()
				expect(fmt.Sprint(n, ": POST under way"), "result=success|")
				failed(r, true, "wire: POST: status 503")
				expect(fmt.Sprint(n, ": POST refused"), "result=error|reason=wire: POST: status 503|")
			}
			r.BeforePost()
			failed(r, false, "wire: GET: the attempt beside it")
			expect("one of two failed", "result=success|")
			r.BeforePost()
			failed(r, true, "wire: POST: status 503")
			expect("one of two POSTs failed", "result=success|")
			failed(r, true, "wire: POST: status 410")
			expect("both POSTs failed", "result=error|reason=wire: POST: status 410|")
			r.BeforePost()
			if accept {
				failed(r, false, "wire: GET: the other of two attempts")
				return wire.Outcome{Attempt: wire.Attempt{Server: r.Server}}, nil
			}
			<-ctx.Done() // amid a POST
			return wire.Outcome{}, context.Cause(ctx)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("stopped amid it"))
		defer cancel()
		if _, err := c.Run(ctx, otherServer, wire.Ready(), false); err == nil {
			t.Error("no error")
		}
		expect("stopped", "result=error|reason=stopped amid it|")
		accept = true
		if _, err := c.Run(t.Context(), otherServer, wire.Ready(), false); err != nil {
			t.Error(err)
		}
		expect("accepted", "result=success|")
		accept = false
		c.Report = func(_ context.Context, r *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
			failed(r, false, "wire: GET: refused")
			return wire.Outcome{Attempts: 1}, errors.New("stopped")
		}
		if _, err := c.Run(t.Context(), otherServer, wire.Ready(), true); err == nil {
			t.Error("no error")
		}
		expect("ready before, and reported again without success", "result=success|")
	})
}

// A forced Ready after a reported failure: the host reads success only while it is sent.
func TestHostRecordAfterFailure(t *testing.T) {
	w := &world{}
	if _, err := w.checkIn(t).Follow(t.Context(), otherServer, wire.ProvisioningFailed("disks"), false); err != nil {
		t.Fatal(err)
	}
	c := w.checkIn(t)
	var told []string
	c.TellHost = func(reason string) { told = append(told, reason) }
	c.Report = func(_ context.Context, r *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
		r.BeforePost()
		r.OnAttempt(wire.Attempt{Server: r.Server, Via: wire.ViaProvisioning, Posted: true, Err: errors.New("refused")})
		return wire.Outcome{Attempts: 1}, errors.New("stopped")
	}
	if _, err := c.Run(t.Context(), otherServer, wire.Ready(), true); err == nil {
		t.Error("no error")
	}
	if diff := cmp.Diff([]string{"", "refused", "stopped"}, told); diff != "" {
		t.Errorf("records for the host (-want +got):\n%s", diff)
	}
}

// Whatever a server sends: what is written about it is short, printable, and can
// be read again.
func TestTextsAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		garbage := make([]byte, random.IntN(100_000))
		for i := range garbage {
			garbage[i] = byte(random.Uint32())
			if random.IntN(2) == 0 {
				garbage[i] = "<&>\"\\\x1b\u2028é"[random.IntN(10)]
			}
		}
		w := &world{}
		c := w.checkIn(t, fmt.Errorf("wire: goal state: %s", garbage))
		longest := 0
		c.Log = func(_ journal.Kind, attrs ...slog.Attr) {
			for _, a := range attrs {
				longest = max(longest, len(a.Value.String()))
			}
		}
		_, runErr := c.Run(t.Context(), otherServer, wire.Ready(), false)
		rec, err := w.records.CheckIn()
		if err != nil || rec.State != boot.Trying || len(rec.LastError) > 512 || longest > 512 || len(runErr.Error()) > 512 {
			t.Fatalf("%d bytes: record %.200v, %v; entry %d, error %d bytes", len(garbage), rec, err, longest, len(runErr.Error()))
		}
	}
}

// A failure is reported once, and a second call can say so.
func TestFailTwice(t *testing.T) {
	w := &world{}
	if _, err := w.checkIn(t).Follow(t.Context(), otherServer, wire.ProvisioningFailed("disks"), false); err != nil {
		t.Fatal(err)
	}
	rec, err := w.checkIn(t).Follow(t.Context(), otherServer, wire.ProvisioningFailed("disks"), false)
	if !errors.Is(err, dispatch.ErrDone) || rec.State != boot.Failed || len(w.did) > 0 {
		t.Errorf("%+v, %v; did %v", rec, err, w.did)
	}
}

// A systemd-networkd that does not tell option 245 is no reason to say anything.
func TestOption245NotTold(t *testing.T) {
	got := dispatch.TargetOf("eth0", nm.Lease{WireServerErr: networkd.ErrOption245Unknown}, nil)
	if got != (dispatch.Target{Server: wire.DefaultAddr, Source: boot.FromConstant, Interface: "eth0"}) {
		t.Errorf("%+v", got)
	}
}
