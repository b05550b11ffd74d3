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
	probeLimit  = 2500 * time.Millisecond
)

// NoAnswer returns the error of a source that took longer than its limit.
type NoAnswer time.Duration

func (e NoAnswer) Error() string { return fmt.Sprintf("no answer within %s", time.Duration(e)) }

// Sources are the sources of a snapshot. Every func returns when its context ends.
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

// Gather takes a snapshot, except for queries over the network. units are read in
// addition to those that this package names. If the machine is not an Azure VM,
// only the platform is read.
func Gather(ctx context.Context, src Sources, units ...string) *Snapshot {
	var files Seen[Snapshot]
	g := begin(ctx, sourceLimit)
	read(g, &files, func(context.Context) (Snapshot, error) { return src.files(), nil })
	g.wait()
	s := &files.V
	s.User = src.User
	if files.Err != nil {
		s.Platform.Err = fmt.Errorf("files: %w", files.Err)
	}
	if !s.Platform.Azure {
		return s
	}
	units = append(units, UnitNetworkManager, UnitDispatcher, UnitNetworkd, UnitTimer, UnitCheckIn, UnitResolved)
	g = begin(ctx, sourceLimit)
	read(g, &s.NM, src.NetworkManager)
	read(g, &s.Networkd, src.Networkd)
	read(g, &s.Resolved, src.Resolved)
	read(g, &s.Units.Status, func(ctx context.Context) (map[string]Unit, error) { return src.Units(ctx, units) })
	g.wait()
	if s.Interface = src.Interface; s.Interface == "" {
		s.Interface = s.pick()
	}
	return s
}

// files reads the files; if the machine is not an Azure VM, only the platform.
func (src Sources) files() Snapshot {
	var s Snapshot
	s.Platform.Azure, s.Platform.Why, s.Platform.Err = azure.Detect(src.Root)
	if s.Platform.Azure {
		s.Hook, s.Conf = readHook(src.Root, src.Label), readConf(src.Root)
		s.Kernel, s.Records = readKernel(src.Root, src.Own), readRecords(src.Root, src.Records)
		s.Units.Systemd = exists(src.Root, "run/systemd/system")
	}
	return s
}

// group reads several sources in parallel.
type group struct {
	ctx    context.Context
	cancel context.CancelFunc
	limit  time.Duration
	n      int
	found  chan func()
}

// maxSources is the maximum number of sources of a group.
const maxSources = 16

func begin(ctx context.Context, limit time.Duration) *group {
	g := &group{limit: limit, found: make(chan func(), maxSources)}
	g.ctx, g.cancel = context.WithTimeoutCause(ctx, limit, NoAnswer(limit))
	return g
}

// read starts reading a source; wait stores the result. Until then, or if the source
// does not answer, the result is an error.
func read[T any](g *group, to *Seen[T], source func(context.Context) (T, error)) {
	to.Err = NoAnswer(g.limit)
	g.n++
	go func() {
		v, err := source(g.ctx)
		if err != nil && g.ctx.Err() != nil {
			err = context.Cause(g.ctx)
		}
		g.found <- func() { *to = Seen[T]{v, err} }
	}()
}

// wait returns when all sources have been read or the limit has passed. A source
// that has not returned by then keeps running: file systems and some libraries
// ignore contexts.
func (g *group) wait() {
	defer g.cancel()
	late := time.After(g.limit + 50*time.Millisecond) // for sources that return when the context ends
	for ; g.n > 0; g.n-- {
		select {
		case put := <-g.found:
			put()
		case <-late:
			return
		}
	}
}
