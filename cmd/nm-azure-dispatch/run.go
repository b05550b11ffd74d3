package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/kvp"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

const (
	flushLimit     = time.Second            // to wait for journald before the process exits
	outputLimit    = 250 * time.Millisecond // to wait for the reader of the output
	defaultTimeout = 5 * time.Minute        // of report-failure
	noTimeout      = 0                      // of check-in: it runs until it has succeeded or is stopped
	maxTimeout     = 24 * time.Hour
)

// gcPercent halves the runtime's minimum heap. A normal run stays below it and never collects garbage; a run that
// receives megabytes instead of a goal state stays within its memory limit.
const gcPercent = 50

// withCheckIn calls f with a check-in and returns its result, for runs that change something. The context ends after
// timeout, unless that is 0, and at SIGTERM or SIGINT.
func withCheckIn(timeout time.Duration, f func(context.Context, *dispatch.CheckIn) (int, error)) (int, error) {
	if os.Geteuid() != 0 { // firewall rules for the WireServer and the records are for root only
		return exitFailed, errors.New("only root can do that: use sudo")
	}
	syscall.Umask(0o022) // every user may read the records
	debug.SetGCPercent(gcPercent)
	// Standard error can be a pipe without a reader, such as nm-dispatcher's after journald was restarted. With SIGPIPE
	// ignored, writes to it fail instead of ending the program (os/signal).
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := untilStopped()
	defer stop()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done after %v", timeout))
		defer cancel()
	}
	j := journal.New(os.Args[0], os.Stderr)
	defer j.Close(flushLimit)
	root := os.DirFS("/")
	return f(ctx, newCheckIn(root, newEnv(ctx, root, j.Log)))
}

// untilStopped returns a context that SIGTERM and SIGINT end.
func untilStopped() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

// timeoutFlag defines --timeout, with a default. It must be more than 0 and at
// most maxTimeout.
func timeoutFlag(flags *flag.FlagSet, timeout time.Duration, usage string) *time.Duration {
	flags.Func("timeout", usage, func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 || d > maxTimeout {
			return fmt.Errorf("want a duration such as 90s or 20m, more than 0 and at most %vh", maxTimeout.Hours())
		}
		timeout = d
		return nil
	})
	return &timeout
}

// onAzure is withCheckIn for commands that do nothing on another platform. remedy is for
// a platform that cannot be told; it may be empty.
func onAzure(remedy string, timeout time.Duration, f func(context.Context, *dispatch.CheckIn) (int, error)) (int, error) {
	is, why, err := azure.Detect(os.DirFS("/"))
	if err != nil {
		return exitFailed, fmt.Errorf("%w%s", err, remedy)
	}
	if !is {
		fmt.Printf("nothing to do: this machine is not Azure (%s)\n", why)
		return exitDone, nil
	}
	return withCheckIn(timeout, f)
}

// printf writes the final message of a run, for at most outputLimit. If the pipe or journald's socket is full and its reader
// is stopped, the text is lost.
func printf(w io.Writer, format string, args ...any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = fmt.Fprintf(w, format, args...)
	}()
	select {
	case <-done:
	case <-time.After(outputLimit):
	}
}

// stateDir holds the records.
const stateDir = "/run/nm-azure-dispatch"

// newEnv returns what the parts of a run share; the bus is closed when ctx ends.
// Without a boot ID, nothing counts as already done.
func newEnv(ctx context.Context, root fs.FS, log func(journal.Kind, ...slog.Attr)) *dispatch.Env {
	id, err := boot.ID(root)
	if err != nil {
		log(journal.RecordFailed, slog.Any("error", err))
	}
	return &dispatch.Env{
		Store:         boot.Store{Dir: stateDir, BootID: id},
		Log:           log,
		Connect:       func(limit context.Context) (*dispatch.Bus, error) { return connect(ctx, limit) },
		Index:         func(iface string) (int, error) { return link.Index(root, iface) },
		DefaultRoutes: func() []string { return link.DefaultRoutes(root) },
		OwnAddrs:      ownAddrs,
		Exists:        func(ifindex int) bool { return link.Exists(root, ifindex) },
	}
}

// newCheckIn returns a check-in that uses the WireServer's client and the records.
func newCheckIn(root fs.FS, env *dispatch.Env) *dispatch.CheckIn {
	_, notInitrd := fs.Stat(root, "etc/initrd-release") // os-release(5)
	host := &kvp.Reporter{
		Path: kvp.Path, Agent: userAgent(), BootID: env.Store.BootID,
		Booted: time.Now().Add(-boot.SinceBoot()), VMID: kvp.VMID(root),
	}
	return &dispatch.CheckIn{
		Env:       env,
		UserAgent: userAgent(),
		Initrd:    notInitrd == nil,
		Report: func(ctx context.Context, r *wire.Reporter, h wire.Health) (wire.Outcome, error) {
			return r.Report(ctx, h)
		},
		TellHost: host.Report,
	}
}

func userAgent() string { return "nm-azure-dispatch/" + version }

// connect opens the bus for the clients of NetworkManager and systemd-resolved.
func connect(ctx, limit context.Context) (*dispatch.Bus, error) {
	conn, err := sysbus.Connect(ctx, limit)
	if err != nil {
		return nil, err
	}
	manager := resolv.NewManager(conn)
	return &dispatch.Bus{
		NetworkManager: func(ctx context.Context) (nm.Snapshot, error) { return nm.Read(ctx, conn) },
		LinkState:      manager.State,
		SetNameservers: manager.SetNameservers,
		SetDomains:     manager.SetDomains,
		FlushCaches:    manager.FlushCaches,
		Probe:          resolv.Probe,
		StartUnit: func(ctx context.Context, unit string) error {
			return sysbus.StartUnit(ctx, conn, unit)
		},
	}, nil
}

// ownAddrs returns the addresses of all interfaces. If the kernel does not answer
// there are none, and only systemd-resolved checks for the machine's own addresses.
func ownAddrs() []netip.Addr {
	all, _ := net.InterfaceAddrs()
	var addrs []netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			addrs = append(addrs, p.Addr())
		}
	}
	return addrs
}
