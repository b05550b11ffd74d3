package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

// read returns a document's bytes. A pipe is fine, so that
// azure-stream lookup <(command) works; a named pipe that nobody writes to is
// an error, not a wait.
func read(name string) ([]byte, error) {
	if name == "-" {
		return readFrom(display(name), os.Stdin)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plainError(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, plainError(name, err)
	}
	if !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeNamedPipe {
		return nil, fmt.Errorf("%s is %s: want a file", name, kind(info))
	}
	return readFrom(name, f)
}

func readFrom(name string, r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, stream.MaxSize+1))
	if err != nil {
		return nil, plainError(name, err)
	}
	return b, nil
}

// display is a document's name for people.
func display(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// A target is a document that will be replaced.
type target struct {
	path string // with links followed
	info fs.FileInfo
	old  []byte
}

// readTarget reads a document that will be replaced. It has to be a file that
// may be written, although what replaces it is a new file.
func readTarget(name string) (target, error) {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return target{}, plainError(name, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.EISDIR) {
		return target{}, fmt.Errorf("%s is a directory: want a file", name)
	}
	if err != nil {
		return target{}, plainError(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return target{}, plainError(name, err)
	}
	if !info.Mode().IsRegular() {
		return target{}, fmt.Errorf("%s is %s: want a file", name, kind(info))
	}
	old, err := readFrom(name, f)
	return target{path: path, info: info, old: old}, err
}

// replace puts new content in the document's place: readers see the old or the
// new one, and mode and owner stay. Nothing is written if nothing changed.
func (t target) replace(content []byte) error {
	if bytes.Equal(t.old, content) {
		return nil
	}
	f, err := renameio.NewPendingFile(t.path,
		renameio.WithTempDir(filepath.Dir(t.path)), renameio.WithStaticPermissions(t.info.Mode().Perm()))
	if err != nil {
		return plainError(t.path+": cannot write a file beside it", err)
	}
	defer func() { _ = f.Cleanup() }()
	if err := keepOwner(f.File, t.info); err != nil {
		return plainError(t.path+": cannot keep the owner, so run this as the owner or as root", err)
	}
	if _, err := f.Write(content); err != nil {
		return plainError(t.path, err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return plainError(t.path, err)
	}
	return nil
}

// keepOwner gives f the owner that want has, if it has another.
func keepOwner(f *os.File, want fs.FileInfo) error {
	have, err := f.Stat()
	if err != nil {
		return err
	}
	h, ok1 := have.Sys().(*syscall.Stat_t)
	w, ok2 := want.Sys().(*syscall.Stat_t)
	if !ok1 || !ok2 || h.Uid == w.Uid && h.Gid == w.Gid {
		return nil
	}
	return f.Chown(int(w.Uid), int(w.Gid))
}

// plainError says "FILE: what happened", without the system call.
func plainError(name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

func kind(info fs.FileInfo) string {
	switch info.Mode().Type() {
	case fs.ModeDir:
		return "a directory"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}
