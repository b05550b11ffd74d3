// Package machine takes a snapshot of the machine for the read-only commands: the
// state of NetworkManager, systemd-networkd, systemd-resolved, systemd, the kernel,
// files and records at one moment.
//
// It changes nothing and starts no service. Sources are read in parallel, each with
// its own time limit. If a source hangs, the snapshot has an error in its place.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// Seen is the value of a source, or why it is not known.
type Seen[T any] struct {
	V   T
	Err error
}

// Snapshot is the machine at one moment.
type Snapshot struct {
	Platform  Platform
	Interface string // the one to check; "" if there is none
	User      int    // the effective user ID

	NM       Seen[nm.Snapshot]
	Networkd Seen[[]networkd.Link]
	Resolved Seen[resolv.Snapshot]
	Units    Seen[map[string]Unit]
	Hook     Hook
	Conf     Conf
	Kernel   Kernel
	Records  Records
	Probes   Probes
}

// Platform is the result of package azure.
type Platform struct {
	Azure bool
	Why   string
	Err   error // why it is not known
}

// Records are those of this boot.
type Records struct {
	BootID  string // "" if it cannot be read
	BootErr error
	CheckIn Seen[boot.CheckIn]         // the error is fs.ErrNotExist without a record
	Links   map[string]Seen[boot.Link] // by interface
}

// Kernel is the kernel's interfaces and addresses.
type Kernel struct {
	Links         []Link // by index
	DefaultRoutes []string
	Own           []netip.Addr // the machine's own addresses
	Neighbours    []Neighbour  // of IPv4
}

// Link is a network interface.
type Link struct {
	Name     string
	Index    int
	Ethernet bool // and neither a bridge nor a port of another interface
}

// Neighbour is an entry of the ARP table.
type Neighbour struct {
	Addr      netip.Addr
	Interface string
	Permanent bool // configured manually
	Complete  bool // the hardware address is known
}

// Limits, which together stay below five seconds.
const (
	sourceLimit  = 2 * time.Second
	networkLimit = 2500 * time.Millisecond
	// grace is for sources that return when their context ends.
	grace = 50 * time.Millisecond
)

// NoAnswer returns the error of a source that took longer than its limit.
type NoAnswer time.Duration

func (e NoAnswer) Error() string { return fmt.Sprintf("no answer within %s", time.Duration(e)) }

// Options say what to read.
type Options struct {
	Root      fs.FS        // the file system from / on
	Records   string       // the directory
	Own       []netip.Addr // the machine's own addresses
	Interface string       // the one to check; "" for the one that Azure calls primary
	Units     []string     // in addition to those that this package names
	// Connect opens the bus before limit ends, and closes it when ctx ends.
	Connect func(ctx, limit context.Context) (*dbus.Conn, error)

	Network   bool   // also query the network
	Name      string // to look up; "" for the default
	UserAgent string // of the requests to the WireServer
}

// Read takes a snapshot. If the machine is not an Azure VM, only the platform is read.
func Read(ctx context.Context, o Options) *Snapshot {
	var files Seen[Snapshot]
	limit, cancel := within(ctx, sourceLimit)
	read(limit, &files, func(context.Context) (Snapshot, error) { return o.files(), nil })()
	cancel()
	s := &files.V
	s.User = os.Geteuid()
	if files.Err != nil {
		s.Platform.Err = fmt.Errorf("files: %w", files.Err)
	}
	if !s.Platform.Azure {
		return s
	}
	limit, cancel = within(ctx, sourceLimit)
	defer cancel()
	conn, err := o.Connect(ctx, limit)
	bus := Seen[*dbus.Conn]{conn, err}
	units := append(o.Units, UnitNetworkManager, UnitDispatcher, UnitNetworkd, UnitTimer, UnitCheckIn, UnitResolved)
	wait(
		call(limit, bus, &s.NM, nm.ReadWithProfiles),
		call(limit, bus, &s.Networkd, networkd.Describe),
		call(limit, bus, &s.Resolved, resolv.ReadSnapshot),
		call(limit, bus, &s.Units, func(ctx context.Context, conn *dbus.Conn) (map[string]Unit, error) {
			return readUnits(ctx, conn, units)
		}),
	)
	if s.Interface = o.Interface; s.Interface == "" {
		s.Interface = s.pick()
	}
	if o.Network {
		s.queryNetwork(ctx, o, bus)
	}
	return s
}

// files reads the files; if the machine is not an Azure VM, only the platform.
func (o Options) files() Snapshot {
	var s Snapshot
	s.Platform.Azure, s.Platform.Why, s.Platform.Err = azure.Detect(o.Root)
	if s.Platform.Azure {
		s.Hook, s.Conf, s.Kernel = readHook(o.Root, label), readConf(o.Root), readKernel(o.Root, o.Own)
		s.Records = readRecords(o.Root, o.Records, s.Kernel.Links)
	}
	return s
}

func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, NoAnswer(d))
}

// read starts reading a source. The returned func waits for the result. A source that has
// not returned when ctx ends keeps running, and the result is an error: file systems and
// some libraries ignore contexts.
func read[T any](ctx context.Context, to *Seen[T], source func(context.Context) (T, error)) (wait func()) {
	found := make(chan Seen[T], 1)
	go func() {
		v, err := source(ctx)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		found <- Seen[T]{v, err}
	}()
	return func() {
		select {
		case *to = <-found:
			return
		case <-ctx.Done():
		}
		select {
		case *to = <-found:
		case <-time.After(grace):
			to.Err = context.Cause(ctx)
		}
	}
}

// call starts reading a source on the bus.
func call[T any](ctx context.Context, bus Seen[*dbus.Conn], to *Seen[T], source func(context.Context, *dbus.Conn) (T, error)) (wait func()) {
	return read(ctx, to, func(ctx context.Context) (v T, err error) {
		if bus.Err != nil {
			return v, bus.Err
		}
		return source(ctx, bus.V)
	})
}

func wait(sources ...func()) {
	for _, result := range sources {
		result()
	}
}

// readRecords reads the records of this boot.
func readRecords(root fs.FS, dir string, links []Link) Records {
	r := Records{Links: map[string]Seen[boot.Link]{}}
	r.BootID, r.BootErr = boot.ID(root)
	store := boot.Store{Dir: dir, BootID: r.BootID}
	r.CheckIn.V, r.CheckIn.Err = store.CheckIn()
	for _, l := range links {
		if rec, err := store.Link(l.Index, l.Name); !errors.Is(err, fs.ErrNotExist) {
			r.Links[l.Name] = Seen[boot.Link]{rec, err}
		}
	}
	return r
}
