package stream

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A rule is what a string in the document has to look like. The JSON Schema
// holds the same rules; a test compares them.
type rule struct {
	want     string // for the message: "want ..."
	ok       func(string) bool
	optional bool // may be absent or empty
}

func nonEmpty() rule {
	return rule{want: "a string that is not empty", ok: func(s string) bool { return s != "" }}
}

func anyText() rule {
	return rule{want: "a string", ok: func(string) bool { return true }}
}

func httpsURL() rule { return rule{want: "https://HOST/PATH", ok: isHTTPS} }

// blobURL has no query: an access token must not be published.
func blobURL() rule {
	return rule{
		want: "https://HOST/PATH, without a query, which could be an access token",
		ok:   func(s string) bool { return isHTTPS(s) && !strings.Contains(s, "?") },
	}
}

// diskPath is a path below the build's folder.
func diskPath() rule {
	return rule{
		want: "a path below the build's folder that ends in ." + strings.Join(Formats(), ", ."),
		ok:   func(s string) bool { return formatOf(s) != "" && fs.ValidPath(s) },
	}
}

func digest() rule { return rule{want: "a SHA-256 of 64 hex digits in lower case", ok: isDigest} }

// urnPart has no colon, since colons separate the parts of a URN.
func urnPart() rule {
	return rule{want: "a name without blanks and colons", ok: func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) < 0
	}}
}

// urnParts are the parts of a URN, in its order.
func urnParts() []string { return []string{"publisher", "offer", "sku", "version"} }

func urn() rule {
	return rule{want: "PUBLISHER:OFFER:SKU:VERSION", ok: func(s string) bool {
		parts := strings.Split(s, ":")
		return len(parts) == 4 && !slices.ContainsFunc(parts, func(part string) bool { return !urnPart().ok(part) })
	}}
}

func optional(r rule) rule {
	r.optional = true
	return r
}

func isDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// isHTTPS leaves out user names and passwords, which have no place in a
// public document.
func isHTTPS(s string) bool { return httpsPattern().MatchString(s) }

var httpsPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/([!-$&-~]|%[0-9A-Fa-f]{2})+$`)
})
