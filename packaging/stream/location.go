package stream

import (
	"fmt"
	"net/url"
	"strings"
)

// CheckBaseURL says what is wrong with a base URL; an empty one is fine.
func CheckBaseURL(s string) error {
	if s != "" && (!isHTTPS(strings.TrimRight(s, "/")+"/x") || strings.ContainsAny(s, "?#")) {
		return fmt.Errorf("base URL %.130q: want https://HOST/PATH, without ? and #", s)
	}
	return nil
}

// location sets where the file is. Without a base URL, a location from before
// stays if it is of a file of the same release and name.
func (a *adder) location(disk []string, img Image, sameRelease bool) {
	where := join(disk, "location")
	if a.opts.BaseURL == "" {
		if old := a.get(where...); old != "" && !(sameRelease && strings.HasSuffix(old, "/"+escapePath(img.Path))) {
			a.doc.Delete(where...)
			a.doc.Delete(join(disk, "signature")...)
			a.note("%s removed: it was of another file, %q", path(where...), old)
		}
		if a.get(where...) == "" {
			a.note("%s not written, for want of a base URL", path(where...))
		}
		return
	}
	location := strings.TrimRight(a.opts.BaseURL, "/") + "/" + escapePath(img.Path)
	a.set(location, where...)
	signature := location + ".sig"
	if a.opts.Unsigned {
		signature = ""
	}
	a.setOrDrop(signature, join(disk, "signature")...)
}

func escapePath(p string) string { return (&url.URL{Path: p}).EscapedPath() }
