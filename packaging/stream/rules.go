package stream

import (
	"regexp"
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

func httpsURL() rule { return rule{want: "https://HOST/PATH", ok: isHTTPS} }

func digest() rule { return rule{want: "a SHA-256 of 64 hex digits in lower case", ok: isDigest} }

// urnPart has no colon, since colons separate the parts of a URN.
func urnPart() rule {
	return rule{want: "a name without blanks and colons", ok: func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) < 0
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
