// Package dispatch is the flow of the program: what is done for an event, in
// which order and within which time, and what is recorded and logged. It does no
// I/O except for the records; everything else is called through func fields.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// Env is shared by the parts of a run.
type Env struct {
	Event nm.Event // what the hook was run for; zero in other runs
	Store boot.Store
	Log   func(journal.Kind, ...slog.Attr) // (*journal.Journal).Log
	// Connect opens the bus, or returns the open one. It is not called if there is
	// nothing to do.
	Connect func(limit context.Context) (*Bus, error)
	Index   func(iface string) (int, error) // an error if the interface is gone
	Exists  func(ifindex int) bool
	// DefaultRoutes names the interfaces with an IPv4 default route, the most
	// preferred first.
	DefaultRoutes func() []string
	OwnAddrs      func() []netip.Addr // of the machine

	recordFailed sync.Once
}

// Bus has the calls over the system bus, and the query of a nameserver.
type Bus struct {
	NetworkManager func(ctx context.Context) (nm.Snapshot, error) // without profiles
	LinkState      func(ctx context.Context, ifindex int) (resolv.State, error)
	SetNameservers func(ctx context.Context, ifindex int, servers []netip.Addr) error
	SetDomains     func(ctx context.Context, ifindex int, domains []string) error
	FlushCaches    func(ctx context.Context) error
	Probe          func(ctx context.Context, server netip.Addr) (resolv.Answer, error)
	StartUnit      func(ctx context.Context, unit string) error
}

// RecordFailed logs, once per run, why a record or lock failed.
func (e *Env) RecordFailed(err error) {
	if err != nil {
		e.recordFailed.Do(func() { e.Log(journal.RecordFailed, slog.Any("error", err)) })
	}
}

// orWithout makes a run continue without a lock if there can be none. The only error
// that it returns is boot.ErrLocked.
func (e *Env) orWithout(unlock func(), err error) (func(), error) {
	if err == nil || errors.Is(err, boot.ErrLocked) {
		return unlock, err
	}
	e.RecordFailed(err)
	return func() {}, nil
}

// within returns a context that ends after d, with a cause that says so.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no answer within %v", d))
}

// wait reports whether the time passed before the context ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
