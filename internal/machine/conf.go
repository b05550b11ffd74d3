package machine

import (
	"bytes"
	"io"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"
)

const (
	resolvConfFile = "etc/resolv.conf"
	resolvedDir    = "run/systemd/resolve/"
	// StubFile is the resolv.conf that names systemd-resolved.
	StubFile = resolvedDir + "stub-resolv.conf"
	// maxText bounds what is read of a file. The package's hook has 1 KB.
	maxText = 64 << 10
	// libcServers is how many nameservers libc reads of resolv.conf, MAXNS.
	libcServers = 3
)

// Conf is the configuration of the resolver and of NetworkManager.
type Conf struct {
	ResolvConf ResolvConf
	// Hosts are the services of the hosts line of nsswitch.conf(5) that query
	// nameservers: "resolve" and "dns".
	Hosts []string
	// Links lists the units that systemd-networkd.service pulls in.
	NetworkdWants []string
	// Unmanaged and Global are files of NetworkManager's configuration that have
	// unmanaged-devices, and a [global-dns] section; "" if none has.
	Unmanaged, Global string
	// DispatcherBus reports whether nm-dispatcher can be started over the bus
	// without systemd; CloudInitOff whether cloud-init is disabled by its file.
	DispatcherBus, CloudInitOff bool
}

// ResolvConf is the contents of /etc/resolv.conf.
type ResolvConf struct {
	File    string // the file that it is or links to, relative to /
	Servers []netip.Addr
	Err     error
}

// Stub reports whether it makes programs query systemd-resolved.
func (v ResolvConf) Stub() bool {
	return slices.ContainsFunc(v.Servers, IsStub) || v.File == StubFile
}

// Resolved reports whether systemd-resolved writes the file.
func (v ResolvConf) Resolved() bool { return v.Stub() || strings.HasPrefix(v.File, resolvedDir) }

// IsStub reports whether the address is one of resolved's stubs, systemd-resolved(8).
func IsStub(a netip.Addr) bool {
	return a == netip.AddrFrom4([4]byte{127, 0, 0, 53}) || a == netip.AddrFrom4([4]byte{127, 0, 0, 54})
}

// unitDirs are where systemd looks for units, systemd.unit(5).
var unitDirs = [...]string{"etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"}

func readConf(root fs.FS) Conf {
	c := Conf{ResolvConf: readResolvConf(root), Hosts: hosts(root)}
	for _, dir := range unitDirs {
		entries, _ := fs.ReadDir(root, path.Join(dir, UnitNetworkd+".wants")) // none without it
		for _, e := range entries {
			c.NetworkdWants = append(c.NetworkdWants, e.Name())
		}
	}
	for _, pattern := range []string{"usr/lib/NetworkManager/conf.d/*.conf", "run/NetworkManager/conf.d/*.conf", "etc/NetworkManager/NetworkManager.conf", "etc/NetworkManager/conf.d/*.conf"} {
		names, _ := fs.Glob(root, pattern) // the pattern is well-formed
		for _, name := range names {
			for line := range bytes.Lines(text(root, name)) {
				switch line := bytes.TrimSpace(line); {
				case bytes.HasPrefix(line, []byte("unmanaged-devices")):
					c.Unmanaged = name
				case bytes.HasPrefix(line, []byte("[global-dns")):
					c.Global = name
				}
			}
		}
	}
	c.DispatcherBus = exists(root, "usr/share/dbus-1/system-services/org.freedesktop.nm_dispatcher.service")
	c.CloudInitOff = exists(root, "etc/cloud/cloud-init.disabled")
	return c
}

func readResolvConf(root fs.FS) ResolvConf {
	var v ResolvConf
	if v.File, v.Err = follow(root, resolvConfFile); v.Err != nil {
		return v
	}
	if _, err := fs.ReadFile(root, v.File); err != nil {
		v.Err = plain(err)
		return v
	}
	for line := range bytes.Lines(text(root, v.File)) {
		f := strings.Fields(string(line))
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(f[1]); err == nil {
			v.Servers = append(v.Servers, a)
		}
	}
	return v
}

// hosts reads the hosts line of nsswitch.conf. Without one libc takes "dns".
// The service resolve is ignored if its module is not installed.
func hosts(root fs.FS) []string {
	for line := range bytes.Lines(text(root, "etc/nsswitch.conf")) {
		text, _, _ := strings.Cut(string(line), "#")
		services, ok := strings.CutPrefix(strings.TrimSpace(text), "hosts:")
		if !ok {
			continue
		}
		var out []string
		for s := range strings.FieldsSeq(services) {
			if s == "dns" || s == "resolve" && module(root) {
				out = append(out, s)
			}
		}
		return out
	}
	return []string{"dns"}
}

// module reports whether nss-resolve(8) is installed.
func module(root fs.FS) bool {
	for _, pattern := range []string{"usr/lib64/libnss_resolve.so.2", "usr/lib/libnss_resolve.so.2", "usr/lib/*/libnss_resolve.so.2", "lib/*/libnss_resolve.so.2"} {
		if names, _ := fs.Glob(root, pattern); len(names) > 0 { // the pattern is well-formed
			return true
		}
	}
	return false
}

// text returns the beginning of a file; nothing if it cannot be read.
func text(root fs.FS, name string) []byte {
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	b, _ := io.ReadAll(io.LimitReader(f, maxText))
	return b
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}
