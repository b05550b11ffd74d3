package machine

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// Limits, which together stay below five seconds.
const (
	sourceLimit = 2 * time.Second
	unitsLimit  = time.Second // then unit files are read
	probeLimit  = 2500 * time.Millisecond
)

// NoAnswer is the error of what took longer than its limit.
type NoAnswer time.Duration

func (e NoAnswer) Error() string { return fmt.Sprintf("no answer within %s", time.Duration(e)) }

// Sources are where a snapshot comes from. Every func returns when its context
// ends.
type Sources struct {
	Root      fs.FS  // the file system from / on
	Interface string // "" for the one that Azure calls primary
	User      int
	Records   string // the directory
	Own       func() []netip.Addr
	Label     func(path string) string // the SELinux label of a file, no link followed; "" if it has none

	NetworkManager func(context.Context) (nm.Snapshot, error)
	Networkd       func(context.Context) ([]networkd.Link, error)
	Resolved       func(context.Context) (resolv.Snapshot, error)
	Units          func(ctx context.Context, names []string) (map[string]Unit, error)
}

// Gather reads everything but what has to be asked on the network. On a machine
// that is not Azure, names are the units that are asked about, beyond the
// package's own.
func Gather(ctx context.Context, src Sources, units ...string) *Snapshot {
	s := &Snapshot{User: src.User}
	s.Platform.Azure, s.Platform.Why, s.Platform.Err = azure.Detect(src.Root)
	if !s.Platform.Azure {
		return s
	}
	late := NoAnswer(sourceLimit)
	s.NM.Err, s.Networkd.Err, s.Resolved.Err, s.Hook.Err, s.Conf.ResolvConf.Err = late, late, late, late, late
	s.Records.CheckIn.Err, s.Records.BootErr = late, late
	units = append(units, UnitNetworkManager, UnitDispatcher, UnitNetworkd, UnitTimer, UnitCheckIn, UnitResolved)
	all(ctx, sourceLimit, s,
		func(ctx context.Context) func(*Snapshot) {
			v, err := src.NetworkManager(ctx)
			return func(s *Snapshot) { s.NM = Seen[nm.Snapshot]{v, err} }
		},
		func(ctx context.Context) func(*Snapshot) {
			v, err := src.Networkd(ctx)
			return func(s *Snapshot) { s.Networkd = Seen[[]networkd.Link]{v, err} }
		},
		func(ctx context.Context) func(*Snapshot) {
			v, err := src.Resolved(ctx)
			return func(s *Snapshot) { s.Resolved = Seen[resolv.Snapshot]{v, err} }
		},
		func(ctx context.Context) func(*Snapshot) {
			u := src.readUnits(ctx, units)
			return func(s *Snapshot) { s.Units = u }
		},
		func(context.Context) func(*Snapshot) {
			h := readHook(src.Root, src.Label)
			return func(s *Snapshot) { s.Hook = h }
		},
		func(context.Context) func(*Snapshot) {
			c := readConf(src.Root)
			return func(s *Snapshot) { s.Conf = c }
		},
		func(context.Context) func(*Snapshot) {
			k := readKernel(src.Root, src.Own)
			r := readRecords(src.Root, src.Records, k.Links)
			return func(s *Snapshot) { s.Kernel, s.Records = k, r }
		},
	)
	if s.Interface = src.Interface; s.Interface == "" {
		s.Interface = s.pick()
	}
	return s
}

// all runs sources side by side and has the snapshot take what each one found.
// A source that has not ended when its limit has passed is left behind: some
// file system, or some library, keeps to no context.
func all(ctx context.Context, limit time.Duration, s *Snapshot, sources ...func(context.Context) func(*Snapshot)) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, NoAnswer(limit))
	defer cancel()
	found := make(chan func(*Snapshot), len(sources))
	for _, source := range sources {
		go func() { found <- source(ctx) }()
	}
	over := make(<-chan time.Time)
	end := ctx.Done()
	for range sources {
		select {
		case take := <-found:
			take(s)
		case <-end:
			end, over = nil, time.After(50*time.Millisecond) // those that do end with the context
			select {
			case take := <-found:
				take(s)
			case <-over:
				return
			}
		case <-over:
			return
		}
	}
}

func (src Sources) readUnits(ctx context.Context, names []string) Units {
	ctx, cancel := context.WithTimeoutCause(ctx, unitsLimit, NoAnswer(unitsLimit))
	defer cancel()
	var u Units
	_, err := fs.Stat(src.Root, "run/systemd/system")
	u.Systemd = err == nil
	if u.Status, err = src.Units(ctx, names); err != nil {
		u.Status = UnitFiles(src.Root, names)
	}
	return u
}
