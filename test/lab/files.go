package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
)

// files is the root file system of a guest, as the host sees it.
type files struct {
	root      *os.Root
	ownKernel bool // what the kernel says is true, and not mounted over files of /proc
}

// ReadFile reads a file of the guest. A path that leads over an absolute link cannot be read so, but with Run.
func (f *files) ReadFile(name string) (string, error) {
	b, err := f.root.ReadFile(strings.TrimPrefix(name, "/"))
	return string(b), err
}

// WriteFile writes a file of the guest, and makes the directories above it.
func (f *files) WriteFile(name, data string, mode fs.FileMode) error {
	name = strings.TrimPrefix(name, "/")
	if err := f.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := f.root.WriteFile(name, []byte(data), mode); err != nil {
		return err
	}
	return f.root.Chmod(name, mode)
}

// Symlink makes a symbolic link in the guest, in the place of a file that may be there.
func (f *files) Symlink(target, name string) error {
	name = strings.TrimPrefix(name, "/")
	if err := f.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.root.Symlink(target, name)
}

// Exists reports whether the guest has a file of that name, also if it is a broken link.
func (f *files) Exists(name string) bool {
	_, err := f.root.Lstat(strings.TrimPrefix(name, "/"))
	return err == nil
}

// furnish writes the configuration.
func (f *files) furnish(c Config) error {
	var err error
	for _, p := range c.Profiles {
		err = errors.Join(err, f.WriteFile(p.path(), p.keyfile(), 0o600))
	}
	texts := map[string]string{
		"/etc/NetworkManager/NetworkManager.conf": c.networkManagerConf(),
		"/etc/systemd/journald.conf.d/lab.conf":   "[Journal]\nStorage=volatile\nRateLimitIntervalSec=0\n",
	}
	maps.Copy(texts, c.Files)
	for name, data := range texts {
		err = errors.Join(err, f.WriteFile(name, data, 0o644))
	}
	if c.Product != nil {
		err = errors.Join(err, f.install(*c.Product))
	}
	return err
}

// openFiles opens a root file system that a machine sees at a path.
func (m *Machine) openFiles(path string) (*os.Root, error) {
	return os.OpenRoot(fmt.Sprintf("/proc/%d/root%s", m.PID(), path))
}
