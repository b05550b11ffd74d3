package doctor_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

const bootID = "b0070001-0000-4000-8000-000000000001"

var (
	constant = netip.MustParseAddr("168.63.129.16")
	second   = netip.MustParseAddr("10.77.0.1")
	own      = netip.MustParseAddr("10.77.0.50")
	other    = netip.MustParseAddr("203.0.113.1")
)

// world is a machine on which everything is well, until a test changes it.
type world struct {
	files   fstest.MapFS
	iface   string
	name    string
	user    int
	boot    string
	records boot.Dir
	label   string

	nm          live.NetworkManager
	nmErr       error
	resolved    live.Resolved
	resolvedErr error
	units       map[string]live.Unit
	unitsErr    error
	source      netip.Addr
	sourceErr   error
	dialErr     map[netip.Addr]error
	gsErr       error
	answers     map[netip.Addr]resolv.Answer // a server that is not in it is silent
	found       live.Answer
	lookUpErr   error
	hang        map[string]bool // what does not answer
}

const (
	gate    = "usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch"
	hook    = "usr/lib/NetworkManager/dispatcher.d/90-nm-azure-dispatch"
	admin   = "etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch"
	program = "usr/libexec/nm-azure-dispatch"
	// 0.0.0.0/0 via 10.77.0.1 and 10.77.0.0/24, as a little-endian machine shows
	// them.
	routes = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
		"eth0\t00000000\t01004D0A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n" +
		"eth0\t00004D0A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n" +
		"eth0\t10813FA8\t01004D0A\t0007\t0\t0\t100\tFFFFFFFF\t0\t0\t0\n"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }

func script(mode fs.FileMode, uid uint32) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("#!/bin/sh\n"), Mode: mode, Sys: &syscall.Stat_t{Uid: uid}}
}

func symlink(target string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

// azureLease is the lease of Azure's DHCP server.
func azureLease() *nm.Lease {
	l := nm.ParseLease(map[string]any{
		"ip_address": "10.77.0.50", "domain_name_servers": "168.63.129.16 10.77.0.1", "routers": "10.77.0.1",
		"domain_name": "lab.internal.cloudapp.net", "private_245": "a8:3f:81:10",
		"rfc3442_classless_static_routes": "0.0.0.0/0 10.77.0.1 168.63.129.16/32 10.77.0.1",
	})
	return &l
}

func (w *world) wish(servers ...string) {
	w.nm.Configuration = []map[string]any{{"interface": "eth0", "nameservers": servers}}
	if len(servers) == 0 {
		w.nm.Configuration = nil
	}
}

func (w *world) link(servers ...netip.Addr) {
	w.resolved.State.Nameservers = nil
	for _, s := range servers {
		w.resolved.State.Nameservers = append(w.resolved.State.Nameservers, resolv.Server{Addr: s})
	}
}

func healthy(t *testing.T) *world {
	t.Helper()
	w := &world{
		files: fstest.MapFS{
			"proc/cmdline": file("ro ignition.platform.id=azure"), "proc/net/route": file(routes),
			"run/systemd/system/x": file(""), "sys/class/net/eth0/type": file("1\n"), "sys/class/net/eth0/ifindex": file("2\n"),
			gate: script(0o755, 0), hook: symlink("no-wait.d/90-nm-azure-dispatch"), program: script(0o755, 0),
			"etc/resolv.conf":                      symlink("../run/systemd/resolve/stub-resolv.conf"),
			"run/systemd/resolve/stub-resolv.conf": file("# managed\nnameserver 127.0.0.53\noptions edns0 trust-ad\n"),
		},
		iface: "eth0", boot: bootID, records: boot.Dir(filepath.Join(t.TempDir(), "state")),
		nm: live.NetworkManager{
			Version: "1.52.1", DNSMode: "systemd-resolved", RcManager: "unmanaged",
			Devices: []live.Device{{
				Interface: "eth0", Managed: true, State: 100, Profile: "Wired connection 1", Method: "auto",
				Lease: azureLease(), Option245: "a8:3f:81:10",
			}},
		},
		resolved: live.Resolved{ResolvConf: "stub", Stub: "yes"},
		units: map[string]live.Unit{
			"NetworkManager-dispatcher.service": {File: "enabled", Active: "inactive"},
			"nm-azure-checkin.timer":            {File: "static", Active: "active"},
			"nm-azure-checkin.service":          {File: "static", Active: "inactive"},
			"systemd-resolved.service":          {File: "enabled", Active: "active"},
		},
		source:  own,
		dialErr: map[netip.Addr]error{}, hang: map[string]bool{},
		answers: map[netip.Addr]resolv.Answer{
			constant: {Server: constant, RTT: 1234567 * time.Nanosecond, EDNS: true}, second: {Server: second, RTT: time.Millisecond, EDNS: true},
		},
		found: live.Answer{Addrs: []netip.Addr{own}},
	}
	w.wish("168.63.129.16", "10.77.0.1")
	w.link(constant, second)
	w.record(t, boot.CheckIn{State: boot.Ready, WireServer: "168.63.129.16", Attempts: 1, AfterBootMS: 2104})
	return w
}

func (w *world) record(t *testing.T, rec boot.CheckIn) {
	t.Helper()
	rec.BootID = bootID
	if err := w.records.WriteCheckIn(rec); err != nil {
		t.Fatal(err)
	}
}

// wait is for what does not answer.
func (w *world) wait(ctx context.Context, what string) error {
	if w.hang[what] {
		<-ctx.Done()
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	return nil
}

func (w *world) env() *doctor.Env {
	return &doctor.Env{
		Root: w.files, Interface: w.iface, Name: w.name, User: w.user, BootID: w.boot, Records: w.records,
		NetworkManager: func(ctx context.Context) (live.NetworkManager, error) {
			if err := w.wait(ctx, "networkmanager"); err != nil {
				return live.NetworkManager{}, err
			}
			return w.nm, w.nmErr
		},
		Resolved: func(ctx context.Context, index int) (live.Resolved, error) {
			if index != 2 && w.iface == "eth0" {
				return live.Resolved{}, fmt.Errorf("asked for link %d", index)
			}
			if err := w.wait(ctx, "resolved"); err != nil {
				return live.Resolved{}, err
			}
			return w.resolved, w.resolvedErr
		},
		Units: func(ctx context.Context, _ []string) (map[string]live.Unit, error) {
			if err := w.wait(ctx, "systemd"); err != nil {
				return nil, err
			}
			return w.units, w.unitsErr
		},
		Label: func(string) string { return w.label },
		Source: func(context.Context, netip.Addr) (netip.Addr, error) {
			return w.source, w.sourceErr
		},
		Dial: func(ctx context.Context, to netip.AddrPort) error {
			if to.Port() != 80 {
				return fmt.Errorf("port %d", to.Port())
			}
			if err := w.wait(ctx, "tcp"); err != nil {
				return err
			}
			return w.dialErr[to.Addr()]
		},
		GoalState: func(ctx context.Context, _ netip.Addr) (wire.GoalState, error) {
			if err := w.wait(ctx, "goalstate"); err != nil {
				return wire.GoalState{}, err
			}
			return wire.GoalState{Incarnation: "1", ContainerID: "c0ffee", InstanceID: "i"}, w.gsErr
		},
		Ask: func(ctx context.Context, server netip.Addr, name string) (resolv.Answer, error) {
			if err := w.wait(ctx, "nameservers"); err != nil {
				return resolv.Answer{}, err
			}
			a, ok := w.answers[server]
			if !ok {
				return a, fmt.Errorf("%s: i/o timeout", name)
			}
			return a, nil
		},
		LookUp: func(ctx context.Context, name string) (live.Answer, error) {
			if err := w.wait(ctx, "lookup"); err != nil {
				return live.Answer{}, err
			}
			return w.found, w.lookUpErr
		},
	}
}

// notOK runs the walk and returns a line for each step that is not ok.
func (w *world) notOK(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, s := range doctor.Run(t.Context(), w.env()) {
		if s.Verdict == doctor.OK {
			continue
		}
		line := fmt.Sprintf("%s %s: %s", s.Name, s.Verdict, s.Seen)
		if s.Remedy != "" {
			line += " -> " + s.Remedy
		}
		lines = append(lines, strings.ReplaceAll(line, string(w.records), "/run/nm-azure-dispatch"))
	}
	return lines
}

// lock makes another run hold the lock of the check-in, as the kernel shows it.
func (w *world) lock(t *testing.T) {
	t.Helper()
	unlock, err := w.records.LockCheckIn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(string(w.records), "check-in.lock"), &st); err != nil {
		t.Fatal(err)
	}
	w.files["proc/locks"] = file(fmt.Sprintf("1: POSIX  ADVISORY  WRITE 1 00:18:1 0 EOF\n2: FLOCK  ADVISORY  WRITE 4711 %02x:%02x:%d 0 EOF\n",
		unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino))
}

// rhcos makes it a machine where NetworkManager alone sees to the nameservers.
func (w *world) rhcos(servers ...string) {
	w.resolvedErr = live.ErrNotRunning
	delete(w.units, "systemd-resolved.service")
	text := "# Generated by NetworkManager\n"
	for _, s := range servers {
		text += "nameserver " + s + "\n"
	}
	w.files["etc/resolv.conf"] = file(text)
	w.nm.DNSMode, w.nm.RcManager = "default", "symlink"
}
