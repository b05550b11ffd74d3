package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

// open opens a regular file; with pipe set, a pipe too. A named pipe that
// nobody writes to is read as empty, and is not waited for.
func open(name, path string, flag int, pipe bool) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, plainError(name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !(pipe && info.Mode().Type() == fs.ModeNamedPipe) {
		err = errors.New("is not a file")
	}
	if err != nil {
		f.Close()
		return nil, nil, plainError(name, err)
	}
	return f, info, nil
}

// read returns a document's bytes. A pipe is fine, so that
// azure-stream lookup <(command) works.
func read(name string) ([]byte, error) {
	if name == "-" {
		return readFrom(display(name), os.Stdin)
	}
	f, _, err := open(name, name, os.O_RDONLY, true)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readFrom(name, f)
}

func readFrom(name string, r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, stream.MaxSize+1))
	if err != nil {
		return nil, plainError(name, err)
	}
	return b, nil
}

// readDocument reads a stream document, or the one in a ConfigMap.
func readDocument(name, osStream string) (*stream.Document, error) {
	in, err := read(name)
	if err != nil {
		return nil, err
	}
	doc, err := stream.ReadDocument(in, osStream)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", display(name), err)
	}
	if streams := doc.Streams(); osStream == "" && len(streams) > 1 {
		note(fmt.Sprintf("%s has streams %s and a default one, which is taken; --os-stream chooses another", display(name), strings.Join(streams, ", ")))
	}
	return doc, nil
}

// merge puts the marketplace images of a file into a document.
func merge(doc *stream.Document, docName, name string) error {
	from, err := readDocument(name, "")
	if err != nil {
		return err
	}
	notes, err := doc.Merge(from)
	if err != nil {
		return fmt.Errorf("%s into %s: %w", display(name), display(docName), err)
	}
	note(notes...)
	return nil
}

func note(texts ...string) {
	for _, text := range texts {
		fmt.Fprintf(os.Stderr, "azure-stream: note: %s\n", printable(text))
	}
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
	f, info, err := open(name, path, os.O_RDWR, false)
	if err != nil {
		return target{}, err
	}
	defer f.Close()
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
