package machine_test

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/bustest"
)

const (
	bootID = "b0070001-0000-4000-8000-000000000001"
	routes = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
		"eth0\t00000000\t01004D0A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }

func symlink(target string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

func files() fstest.MapFS {
	return fstest.MapFS{
		"proc/cmdline": file("ro ignition.platform.id=azure"), "proc/net/route": file(routes), "proc/sys/kernel/random/boot_id": file(bootID + "\n"),
		"sys/class/net/eth0/type": file("1\n"), "sys/class/net/eth0/ifindex": file("2\n"),
		"etc/resolv.conf": symlink("../run/systemd/resolve/stub-resolv.conf"), "run/systemd/resolve/stub-resolv.conf": file("nameserver 127.0.0.53\n"),
	}
}

// What does not answer is given up, whether it returns when its context ends or never, and
// what it has found by then is kept.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := machine.Within(t.Context(), time.Second)
		defer cancel()
		never := make(chan struct{})
		defer close(never)
		var quick, returns, partial, stays machine.Seen[int]
		start := time.Now()
		for _, wait := range []func(){
			machine.ReadInt(ctx, &stays, func(context.Context) (int, error) { <-never; return 1, nil }),
			machine.ReadInt(ctx, &quick, func(context.Context) (int, error) { return 2, nil }),
			machine.ReadInt(ctx, &returns, func(ctx context.Context) (int, error) { <-ctx.Done(); return 3, errors.New("gave up") }),
			machine.ReadInt(ctx, &partial, func(ctx context.Context) (int, error) { <-ctx.Done(); return 4, nil }),
		} {
			wait()
		}
		late := machine.NoAnswer(time.Second)
		want := []machine.Seen[int]{{V: 2}, {V: 3, Err: late}, {V: 4}, {Err: late}}
		if diff := cmp.Diff(want, []machine.Seen[int]{quick, returns, partial, stays}); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took > 1100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// Each daemon that does not answer, and a bus that does not, leave an error in the
// snapshot, beside what is known without it.
func TestHangingDaemons(t *testing.T) {
	b := bustest.New(t)
	for _, name := range []string{"org.freedesktop.NetworkManager", "org.freedesktop.network1", "org.freedesktop.resolve1", "org.freedesktop.systemd1"} {
		silent(t, b, name)
	}
	for name, connect := range map[string]func(context.Context, context.Context) (*dbus.Conn, error){
		"daemons": func(_, _ context.Context) (*dbus.Conn, error) { return b.Connect(t), nil },
		"bus": func(_, limit context.Context) (*dbus.Conn, error) {
			<-limit.Done()
			return nil, context.Cause(limit)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := machine.Read(t.Context(), machine.Options{Root: files(), Records: t.TempDir(), Connect: connect})
			late := machine.NoAnswer(2 * time.Second)
			for source, err := range map[string]error{"NetworkManager": s.NM.Err, "systemd-networkd": s.Networkd.Err, "systemd-resolved": s.Resolved.Err, "systemd": s.Units.Err} {
				if !errors.Is(err, late) {
					t.Errorf("%s: error is %v", source, err)
				}
			}
			if s.Interface != "eth0" || s.Conf.ResolvConf.Err != nil || s.Records.BootID != bootID {
				t.Errorf("what does not hang is missing: %+v", s)
			}
		})
	}
}

// hung is a file system of which nothing can be read.
type hung chan struct{}

func (h hung) Open(name string) (fs.File, error) {
	<-h
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrClosed}
}

// Without the files nothing is known, not even the platform.
func TestHangingFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := make(hung)
		defer close(root)
		s := machine.Read(t.Context(), machine.Options{Root: root})
		var late machine.NoAnswer
		if !errors.As(s.Platform.Err, &late) || s.Platform.Azure {
			t.Errorf("platform %+v", s.Platform)
		}
	})
}

func TestNotAzure(t *testing.T) {
	s := machine.Read(t.Context(), machine.Options{Root: fstest.MapFS{"proc/cmdline": file("ignition.platform.id=qemu")}, Network: true})
	if s.Platform.Azure {
		t.Error("qemu is Azure")
	}
}

func script(text string, mode fs.FileMode, uid uint32) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(text), Mode: mode, Sys: &syscall.Stat_t{Uid: uid}}
}

func TestReadHook(t *testing.T) {
	const (
		vendor = machine.VendorHook
		gate   = "usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch"
		text   = "#!/bin/sh\nexec /usr/libexec/nm-azure-dispatch \"$@\"\n"
	)
	root := func(more fstest.MapFS) fstest.MapFS {
		m := fstest.MapFS{vendor: symlink("no-wait.d/90-nm-azure-dispatch"), gate: script(text, 0o755, 0), machine.Program: script("\x7fELF", 0o755, 0)}
		for name, f := range more {
			m[name] = f
		}
		return m
	}
	tests := []struct {
		name string
		root fstest.MapFS
		want machine.Hook
	}{
		{"missing", fstest.MapFS{}, machine.Hook{Name: vendor, File: vendor, Err: fs.ErrNotExist}},
		{"the package's", root(nil), machine.Hook{Name: vendor, File: gate, Mode: 0o755, Calls: true, Program: true}},
		{"replaced", root(fstest.MapFS{machine.AdminHook: script("#!/bin/sh\nexit 0\n", 0o700, 7)}), machine.Hook{Name: machine.AdminHook, File: machine.AdminHook, Mode: 0o700, Owner: 7, Program: true}},
		{"masked", root(fstest.MapFS{machine.AdminHook: file("")}), machine.Hook{Name: machine.AdminHook, File: machine.AdminHook, Mode: 0o644, Empty: true, Calls: true, Program: true}},
		{"the program itself", root(fstest.MapFS{machine.AdminHook: symlink("/usr/libexec/nm-azure-dispatch")}), machine.Hook{Name: machine.AdminHook, File: machine.Program, Mode: 0o755, Calls: true, Program: true}},
		{"a loop of links", root(fstest.MapFS{vendor: symlink("90-nm-azure-dispatch")}), machine.Hook{Name: vendor, File: vendor, Err: syscall.ELOOP, Program: true}},
		{"SELinux", root(fstest.MapFS{"sys/fs/selinux/enforce": file("1")}), machine.Hook{
			Name: vendor, File: gate, Mode: 0o755, Calls: true, Program: true, Enforce: "1", EntryLabel: "label of /" + vendor, TargetLabel: "label of /" + gate,
		}},
	}
	for _, tt := range tests {
		got := machine.ReadHook(tt.root, func(name string) string { return "label of " + name })
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestReadConf(t *testing.T) {
	tests := []struct {
		name string
		root fstest.MapFS
		want machine.Conf
	}{
		{"nothing", fstest.MapFS{}, machine.Conf{Hosts: []string{"dns"}, ResolvConf: machine.ResolvConf{File: "etc/resolv.conf", Err: fs.ErrNotExist}}},
		{"a usual one", fstest.MapFS{
			"etc/resolv.conf": symlink("../run/systemd/resolve/stub-resolv.conf"), "run/systemd/resolve/stub-resolv.conf": file("# x\nnameserver 127.0.0.53\nsearch a\nnameserver bad\n"),
			"etc/nsswitch.conf": file("passwd: files\nhosts:\tfiles resolve [!UNAVAIL=return] dns # comment\n"), "usr/lib/x/libnss_resolve.so.2": file(""),
			"etc/NetworkManager/NetworkManager.conf": file("[keyfile]\nunmanaged-devices=interface-name:eth0\n"),
			"etc/NetworkManager/conf.d/dns.conf":     file("[global-dns-domain-*]\nservers=192.0.2.1\n"),
		}, machine.Conf{
			ResolvConf: machine.ResolvConf{File: machine.StubFile, Servers: []netip.Addr{netip.MustParseAddr("127.0.0.53")}},
			Hosts:      []string{"resolve", "dns"}, Unmanaged: "etc/NetworkManager/NetworkManager.conf", Global: "etc/NetworkManager/conf.d/dns.conf",
		}},
		{
			"files only, and resolve without its module",
			fstest.MapFS{"etc/nsswitch.conf": file("hosts: files resolve\n"), "etc/resolv.conf": symlink("/run/x")},
			machine.Conf{ResolvConf: machine.ResolvConf{File: "run/x", Err: fs.ErrNotExist}},
		},
		{
			"a link that climbs above the root",
			fstest.MapFS{"etc/resolv.conf": symlink("../../../run/x"), "run/x": file("nameserver 192.0.2.1\n")},
			machine.Conf{Hosts: []string{"dns"}, ResolvConf: machine.ResolvConf{File: "run/x", Servers: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}},
		},
		{"a directory", fstest.MapFS{"etc/resolv.conf/x": file("")}, machine.Conf{Hosts: []string{"dns"}, ResolvConf: machine.ResolvConf{File: "etc/resolv.conf", Err: fs.ErrInvalid}}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, machine.ReadConf(tt.root), cmpopts.EquateErrors(), cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A record of a link is read also where the link has neither a lease nor a default route.
func TestRecords(t *testing.T) {
	dir := boot.Store{Dir: filepath.Join(t.TempDir(), "state"), BootID: bootID}
	if err := dir.WriteLink(2, boot.Link{Interface: "eth0", State: boot.Pushed}); err != nil {
		t.Fatal(err)
	}
	r := machine.ReadRecords(files(), dir.Dir, []machine.Link{{Name: "lo", Index: 1}, {Name: "eth0", Index: 2}})
	if len(r.Links) != 1 || r.Links["eth0"].V.State != boot.Pushed || !errors.Is(r.CheckIn.Err, fs.ErrNotExist) {
		t.Errorf("records %+v", r)
	}
}

func TestReadKernel(t *testing.T) {
	root := files()
	for name, f := range (fstest.MapFS{
		"sys/class/net/lo/type": file("772\n"), "sys/class/net/lo/ifindex": file("1\n"),
		"sys/class/net/docker0/type": file("1\n"), "sys/class/net/docker0/bridge/x": file(""), "sys/class/net/docker0/ifindex": file("3\n"),
		"sys/class/net/enP1/type": file("1\n"), "sys/class/net/enP1/master": symlink("../eth0"), "sys/class/net/enP1/ifindex": file("4\n"),
		"sys/class/net/eth9/type": file("1\n"), "sys/class/net/eth9/ifindex": file("5\n"),
		"proc/net/arp": file("IP address       HW type     Flags       HW address            Mask     Device\n10.77.0.1        0x1         0x6         00:00:00:00:00:01     *        eth0\n10.77.0.9        0x1         0x0         00:00:00:00:00:00     *        eth0\n"),
	}) {
		root[name] = f
	}
	want := machine.Kernel{
		Links: []machine.Link{
			{Name: "lo", Index: 1}, {Name: "eth0", Index: 2, Ethernet: true}, {Name: "docker0", Index: 3}, {Name: "enP1", Index: 4}, {Name: "eth9", Index: 5, Ethernet: true},
		},
		DefaultRoutes: []string{"eth0"},
		Neighbours: []machine.Neighbour{
			{Addr: netip.MustParseAddr("10.77.0.1"), Interface: "eth0", Permanent: true, Complete: true}, {Addr: netip.MustParseAddr("10.77.0.9"), Interface: "eth0"},
		},
	}
	got := machine.ReadKernel(root, nil)
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("kernel (-want +got):\n%s", diff)
	}
}

func TestPick(t *testing.T) {
	nic := func(name string, index int) machine.Link {
		return machine.Link{Name: name, Index: index, Ethernet: true}
	}
	primary := &nm.Lease{Routes: []netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")}}
	device := func(name string, l *nm.Lease) nm.Device {
		return nm.Device{Interface: name, Managed: true, Lease: l}
	}
	tests := []struct {
		name   string
		links  []machine.Link
		routes []string
		nm     []nm.Device
		want   string
	}{
		{"nothing", nil, nil, nil, ""},
		{"the default route", []machine.Link{nic("eth0", 2), nic("eth1", 3)}, []string{"eth1"}, []nm.Device{device("eth1", &nm.Lease{Routers: []netip.Addr{{}}})}, "eth1"},
		{"the first", []machine.Link{{Name: "lo", Index: 1}, nic("eth9", 3), nic("eth10", 4)}, nil, nil, "eth9"},
		{"the primary one, whatever the metric", []machine.Link{nic("eth0", 2), nic("eth1", 3)}, []string{"eth1", "eth0"}, []nm.Device{device("eth0", primary), device("eth1", &nm.Lease{})}, "eth0"},
		{"of a VF and its twin the preferred", []machine.Link{nic("eth0", 2), nic("enP1", 3)}, []string{"enP1", "eth0"}, []nm.Device{device("eth0", primary), device("enP1", primary)}, "enP1"},
		// D15
		{"the primary one has no lease", []machine.Link{nic("eth0", 2), nic("eth1", 3)}, []string{"eth1"}, []nm.Device{device("eth0", nil), device("eth1", &nm.Lease{})}, "eth0"},
	}
	for _, tt := range tests {
		s := machine.Snapshot{Kernel: machine.Kernel{Links: tt.links, DefaultRoutes: tt.routes}, NM: machine.Seen[nm.Snapshot]{V: nm.Snapshot{Devices: tt.nm}}}
		if got := s.Pick(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
