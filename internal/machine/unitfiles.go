package machine

import (
	"io/fs"
	"path"
)

// Where systemd looks for units, most important first, systemd.unit(5),
// relative to /. What follows the first two is the vendor's.
var unitDirs = [...]string{"etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"}

// UnitFiles tells the status of units by looking at files alone, for where systemd
// cannot be asked. It knows "masked", "enabled", "disabled" and "".
func UnitFiles(root fs.FS, names []string) map[string]Unit {
	units := make(map[string]Unit, len(names))
	for _, name := range names {
		units[name] = Unit{File: unitFile(root, name)}
	}
	return units
}

func unitFile(root fs.FS, name string) string {
	for _, dir := range unitDirs {
		file := path.Join(dir, name)
		target, err := fs.ReadLink(root, file)
		if err == nil && target == "/dev/null" {
			return "masked"
		}
		if fi, statErr := fs.Lstat(root, file); statErr != nil {
			continue
		} else if fi.Size() == 0 && fi.Mode().IsRegular() {
			return "masked"
		}
		if wanted(root, name) {
			return "enabled"
		}
		return "disabled"
	}
	return ""
}

// wanted reports whether a unit's directory of links, or a link under another
// name, leads to the unit.
func wanted(root fs.FS, name string) bool {
	for _, dir := range unitDirs {
		for _, pattern := range []string{"*.wants", "*.requires"} {
			dirs, _ := fs.Glob(root, path.Join(dir, pattern)) // the pattern is well-formed
			for _, d := range dirs {
				if _, err := fs.Lstat(root, path.Join(d, name)); err == nil {
					return true
				}
			}
		}
		entries, _ := fs.ReadDir(root, dir) // none if it cannot be read
		for _, e := range entries {
			if e.Type() != fs.ModeSymlink || e.Name() == name {
				continue
			}
			if target, err := fs.ReadLink(root, path.Join(dir, e.Name())); err == nil && path.Base(target) == name {
				return true
			}
		}
	}
	return false
}
