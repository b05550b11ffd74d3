package machine

import (
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"
	"syscall"
)

const (
	resolvConfFile = "etc/resolv.conf"
	resolvedDir    = "run/systemd/resolve/"
	// StubFile is the resolv.conf that names systemd-resolved.
	StubFile = resolvedDir + "stub-resolv.conf"
)

// Conf is the configuration of the resolver and of NetworkManager.
type Conf struct {
	ResolvConf ResolvConf
	// Hosts are the services of the hosts line of nsswitch.conf(5) that query
	// nameservers: "resolve" and "dns".
	Hosts []string
	// Unmanaged and Global are files of NetworkManager's configuration that have
	// unmanaged-devices, and a [global-dns] section; "" if none has.
	Unmanaged, Global string
	CloudInitOff      bool // cloud-init is disabled by its file
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

// Where NetworkManager looks for its configuration, of which the later file counts, and
// libc for the module nss-resolve(8).
var (
	managerFiles = [...]string{
		"usr/lib/NetworkManager/conf.d/*.conf", "run/NetworkManager/conf.d/*.conf",
		"etc/NetworkManager/NetworkManager.conf", "etc/NetworkManager/conf.d/*.conf",
	}
	moduleFiles = [...]string{
		"usr/lib64/libnss_resolve.so.2", "usr/lib/libnss_resolve.so.2", "usr/lib/*/libnss_resolve.so.2", "lib/*/libnss_resolve.so.2",
	}
)

func readConf(root fs.FS) Conf {
	c := Conf{ResolvConf: readResolvConf(root), Hosts: hosts(root), CloudInitOff: exists(root, "etc/cloud/cloud-init.disabled")}
	for _, name := range glob(root, managerFiles[:]) {
		for line := range strings.Lines(text(root, name)) {
			switch line := strings.TrimSpace(line); {
			case strings.HasPrefix(line, "unmanaged-devices"):
				c.Unmanaged = name
			case strings.HasPrefix(line, "[global-dns"):
				c.Global = name
			}
		}
	}
	return c
}

func glob(root fs.FS, patterns []string) []string {
	var names []string
	for _, p := range patterns {
		found, _ := fs.Glob(root, p) // the patterns are well-formed
		names = append(names, found...)
	}
	return names
}

func readResolvConf(root fs.FS) ResolvConf {
	var v ResolvConf
	if v.File, v.Err = follow(root, resolvConfFile); v.Err != nil {
		return v
	}
	var lines string
	lines, v.Err = head(root, v.File)
	for line := range strings.Lines(lines) {
		f := strings.Fields(line)
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
	for line := range strings.Lines(text(root, "etc/nsswitch.conf")) {
		line, _, _ := strings.Cut(line, "#")
		services, ok := strings.CutPrefix(strings.TrimSpace(line), "hosts:")
		if !ok {
			continue
		}
		return slices.DeleteFunc(strings.Fields(services), func(s string) bool {
			return s != "dns" && (s != "resolve" || len(glob(root, moduleFiles[:])) == 0)
		})
	}
	return []string{"dns"}
}

// maxText bounds what is read of a file; the package's hook has 1 KB. maxLinks is the
// kernel's own limit.
const (
	maxText  = 64 << 10
	maxLinks = 40
)

// text returns the beginning of a file, "" if it cannot be read.
func text(root fs.FS, name string) string {
	b, _ := head(root, name)
	return b
}

// head returns the beginning of a file.
func head(root fs.FS, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", plain(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxText))
	return string(b), plain(err)
}

// plain removes the path from an error, because it lacks the leading slash; the caller
// adds it.
func plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

// follow returns the file to which a path leads over symbolic links, and an error if it
// does not exist.
func follow(root fs.FS, name string) (string, error) {
	for range maxLinks {
		target, err := fs.ReadLink(root, name)
		if err != nil {
			_, err := fs.Lstat(root, name)
			return name, plain(err)
		}
		if !path.IsAbs(target) {
			target = path.Join("/", path.Dir(name), target)
		}
		name = path.Clean(target)[1:] // above the root is the root
	}
	return name, syscall.ELOOP
}
