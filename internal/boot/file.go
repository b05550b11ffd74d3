package boot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
)

// read decodes a record, which must be a trusted regular file. bootID is the field
// of rec with the boot that it is of. The error is fs.ErrNotExist if that is another.
func (s Store) read(name string, rec any, bootID *string) error {
	file := s.path(name)
	if err := trusted(path.Dir(file), fs.ModeDir); err != nil {
		return err
	}
	if err := trusted(file, 0); err != nil {
		return err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	if err := json.Unmarshal(b, rec); err != nil {
		return fmt.Errorf("boot: %s: %w", file, err)
	}
	if *bootID == "" || *bootID != s.BootID {
		return fmt.Errorf("boot: %s: of boot %.36q: %w", file, *bootID, fs.ErrNotExist)
	}
	return nil
}

// write replaces a record by rename, so that a reader sees the old one or the
// new one. It does not replace a file of another type, which is an error. The new
// file always has the same name: what an interrupted run left is overwritten.
func (s Store) write(name string, rec any) error {
	file := s.path(name)
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return fmt.Errorf("boot: %s: %w", file, err)
	}
	if err := s.make(path.Dir(file)); err != nil {
		return err
	}
	if err := trusted(file, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err = os.WriteFile(file+".new", append(b, '\n'), 0o644); err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	return nil
}

// make creates the directory, and the store's directory above it. The error says
// why an existing directory is not trusted.
func (s Store) make(dir string) error {
	for _, d := range slices.Compact([]string{s.Dir, dir}) {
		if err := os.Mkdir(d, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("boot: %w", err)
		}
		if err := trusted(d, fs.ModeDir); err != nil {
			return err
		}
	}
	return nil
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
	names := map[fs.FileMode]string{
		0: "a regular file", fs.ModeDir: "a directory", fs.ModeSymlink: "a symbolic link", fs.ModeNamedPipe: "a FIFO",
	}
	return cmp.Or(names[mode.Type()], "a special file")
}
