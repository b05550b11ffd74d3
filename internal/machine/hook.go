package machine

import (
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
	Err     error  // why that cannot be read, or is no regular file
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
	h.Enforce = strings.TrimSpace(text(root, enforceFile))
	if h.File, h.Err = follow(root, h.Name); h.Err != nil {
		return h
	}
	if h.Enforce != "" {
		h.EntryLabel, h.TargetLabel = label("/"+h.Name), label("/"+h.File)
	}
	fi, err := fs.Stat(root, h.File)
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		h.Err = err
		return h
	}
	h.Mode, h.Empty = fi.Mode(), fi.Size() == 0
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		h.Owner = st.Uid
	}
	b := text(root, h.File) // "" if it cannot be read, which nm-dispatcher, as root, can
	h.Calls = b == "" || strings.HasPrefix(b, "\x7fELF") || strings.Contains(b, path.Base(Program))
	return h
}

// label reads a file's SELinux label, without following a link; "" if it has none.
func label(name string) string {
	var buf [256]byte
	n, _ := unix.Lgetxattr(name, "security.selinux", buf[:]) // 0 or -1 on an error
	return strings.TrimRight(string(buf[:max(n, 0)]), "\x00")
}
