package doctor

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
)

const (
	resolvConfFile = "etc/resolv.conf"
	resolvedDir    = "run/systemd/resolve/"
	stubFile       = resolvedDir + "stub-resolv.conf"
	// maxResolvConf bounds what is read of it; libc reads three servers of it.
	maxResolvConf = 64 << 10
)

// resolvConfView is what /etc/resolv.conf says.
type resolvConfView struct {
	file    string // what it leads to, relative to /
	servers []netip.Addr
	err     error
}

// stub reports whether programs ask systemd-resolved by it.
func (v resolvConfView) stub() bool {
	return slices.ContainsFunc(v.servers, isStub) || v.file == stubFile
}

// ours reports whether systemd-resolved writes the file.
func (v resolvConfView) ours() bool { return v.stub() || strings.HasPrefix(v.file, resolvedDir) }

// isStub reports whether resolved listens there, systemd-resolved(8).
func isStub(a netip.Addr) bool {
	return a == netip.AddrFrom4([4]byte{127, 0, 0, 53}) || a == netip.AddrFrom4([4]byte{127, 0, 0, 54})
}

func readResolvConf(root fs.FS) resolvConfView {
	var v resolvConfView
	if v.file, v.err = follow(root, resolvConfFile); v.err != nil {
		return v
	}
	var b []byte
	if b, v.err = fs.ReadFile(root, v.file); v.err != nil {
		return v
	}
	for line := range bytes.Lines(b[:min(len(b), maxResolvConf)]) {
		f := strings.Fields(string(line))
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(f[1]); err == nil {
			v.servers = append(v.servers, a)
		}
	}
	return v
}

func resolvConf(_ context.Context, env *Env) result {
	v := readResolvConf(env.Root)
	say, run := "have NetworkManager write it", "sudo nmcli general reload dns-rc"
	if env.resolved != nil {
		say, run = "link it to systemd-resolved", "sudo ln -sf ../"+stubFile+" /etc/resolv.conf"
	}
	switch {
	case v.err != nil && v.file != resolvConfFile:
		return fail(fmt.Sprintf("/etc/resolv.conf leads to /%s, which is not there", v.file), say, run)
	case v.err != nil:
		return fail("/etc/resolv.conf cannot be read: "+v.err.Error(), say, run)
	case len(v.servers) == 0:
		return fail(fmt.Sprintf("/%s names no nameserver", v.file), say, run)
	case v.stub() && env.resolved != nil && env.resolved.Stub == "no":
		return fail("/etc/resolv.conf names the stub of systemd-resolved, which is turned off", "remove DNSStubListener=no from /etc/systemd/resolved.conf, then restart it", "sudo systemctl restart "+resolvedUnit)
	case !v.ours() && env.resolved != nil:
		return warn(fmt.Sprintf("/%s names %s, past systemd-resolved", v.file, join(v.servers)), say, run)
	}
	return ok(fmt.Sprintf("/%s names %s", v.file, join(v.servers)))
}
