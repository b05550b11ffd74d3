package machine

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Where the hook is, relative to /; NetworkManager-dispatcher(8).
const (
	hookName    = "90-nm-azure-dispatch"
	VendorHook  = "usr/lib/NetworkManager/dispatcher.d/" + hookName
	AdminHook   = "etc/NetworkManager/dispatcher.d/" + hookName
	Program     = "usr/libexec/nm-azure-dispatch"
	enforceFile = "sys/fs/selinux/enforce"
)

// Hook is the script that nm-dispatcher runs for the program. An entry of the same
// name in /etc replaces the package's before any other rule applies. Paths are
// relative to /.
type Hook struct {
	Name    string // the entry in dispatcher.d
	File    string // the file that it is or links to
	Err     error  // why that cannot be read
	Mode    fs.FileMode
	Empty   bool
	Owner   uint32 // the user ID
	Calls   bool   // it is the program or calls it
	Program bool   // the program exists and is executable

	// Of SELinux: "1" if it is enforced, "0" if it is not, "" without it; then
	// the labels of the entry itself and of what it leads to.
	Enforce     string
	EntryLabel  string
	TargetLabel string
}

// readHook reads the hook. label returns the SELinux label of a path,
// without following a link.
func readHook(root fs.FS, label func(string) string) Hook {
	h := Hook{Name: AdminHook}
	if _, err := fs.Lstat(root, h.Name); err != nil { // not Stat: a link to /dev/null replaces it too
		h.Name = VendorHook
	}
	if fi, err := fs.Stat(root, Program); err == nil {
		h.Program = fi.Mode().Perm()&0o111 != 0
	}
	h.Enforce = strings.TrimSpace(string(text(root, enforceFile)))
	if h.File, h.Err = follow(root, h.Name); h.Err != nil {
		return h
	}
	if h.Enforce != "" {
		h.EntryLabel, h.TargetLabel = label("/"+h.Name), label("/"+h.File)
	}
	fi, err := fs.Stat(root, h.File)
	if err != nil {
		h.Err = err
		return h
	}
	h.Mode, h.Empty = fi.Mode(), fi.Size() == 0
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		h.Owner = st.Uid
	}
	h.Calls = !h.Mode.IsRegular() || calls(root, h.File)
	return h
}

// calls reports whether a file is the program, or a script that names it. An
// unreadable file counts as one.
func calls(root fs.FS, name string) bool {
	b := text(root, name)
	return len(b) == 0 || bytes.HasPrefix(b, []byte("\x7fELF")) || bytes.Contains(b, []byte(path.Base(Program)))
}

// maxLinks is the kernel's own limit.
const maxLinks = 40

// follow returns the file to which a path leads over symbolic links, and an error if
// it does not exist.
func follow(root fs.FS, name string) (string, error) {
	for range maxLinks {
		target, err := fs.ReadLink(root, name)
		if err != nil {
			_, err := fs.Lstat(root, name)
			return name, plain(err)
		}
		if path.IsAbs(target) {
			name = path.Clean(target)[1:]
		} else {
			name = path.Join(path.Dir(name), target)
		}
	}
	return name, syscall.ELOOP
}

// plain removes the operation and the path from an error, because the path lacks the
// leading slash; the caller adds it.
func plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Label reads a file's SELinux label, without following a link; "" if it has
// none.
func Label(name string) string {
	var buf [256]byte
	n, err := unix.Lgetxattr(name, "security.selinux", buf[:])
	if err != nil {
		return ""
	}
	return string(bytes.TrimRight(buf[:n], "\x00"))
}
