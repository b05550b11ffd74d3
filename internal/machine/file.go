package machine

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"syscall"
)

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
		if path.IsAbs(target) {
			name = path.Clean(target)[1:]
		} else {
			name = path.Join(path.Dir(name), target)
		}
	}
	return name, syscall.ELOOP
}
