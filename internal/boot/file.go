package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/google/renameio/v2"
)

// maxRecord bounds what is read of a record, in bytes.
const maxRecord = 64 << 10

// read decodes a record. It reads only trusted regular files, follows no symbolic
// link, and does not block on a FIFO.
func (s Store) read(name string, rec any) error {
	if err := trusted(s.path(path.Dir(name)), fs.ModeDir); err != nil {
		return err
	}
	file := s.path(name)
	if err := trusted(file, 0); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	if len(b) > maxRecord {
		return fmt.Errorf("boot: %s: longer than %d bytes", file, maxRecord)
	}
	if err := json.Unmarshal(b, rec); err != nil {
		return fmt.Errorf("boot: %s: %w", file, err)
	}
	return nil
}

// write replaces a record by rename, so that a reader sees the old one or the
// new one. It does not replace a file of another type, which is an error.
func (s Store) write(name string, rec any) error {
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return fmt.Errorf("boot: %s: %w", s.path(name), err)
	}
	dir := s.path(path.Dir(name))
	if err := s.make(dir); err != nil {
		return err
	}
	if err := trusted(s.path(name), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = renameio.WriteFile(s.path(name), append(b, '\n'), 0o644,
		renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	return nil
}

// make creates the directory, and the store's directory above it. The error says
// why an existing directory is not trusted.
func (s Store) make(dir string) error {
	if dir != s.Dir {
		if err := s.make(s.Dir); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = os.Chmod(dir, 0o755) // regardless of the umask
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("boot: %w", err)
	}
	return trusted(dir, fs.ModeDir)
}

// trusted checks that a path is of the wanted type (0: a regular file, no link
// followed), that root or this program's user owns it, and that no other user
// can write to it.
func trusted(name string, want fs.FileMode) error {
	fi, err := os.Lstat(name)
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	if fi.Mode().Type() != want {
		return fmt.Errorf("boot: %s is %s, want %s: remove it", name, kind(fi.Mode()), kind(want))
	}
	uid := fi.Sys().(*syscall.Stat_t).Uid
	if uid != 0 && int(uid) != os.Geteuid() {
		return fmt.Errorf("boot: %s belongs to user %d, want root: remove it", name, uid)
	}
	if perm := fi.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("boot: %s has mode %04o, others can write to it: remove it", name, perm)
	}
	return nil
}

// kind returns the name of a file type.
func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a regular file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a FIFO"
	}
	return "a special file"
}
