package failure

import (
	"strings"
	"unicode"
)

// hidden replaces secrets.
const hidden = "[...]"

// minSecret is the length of a run of letters and digits that is treated as a key.
const minSecret = 40

// clean removes control characters and known forms of secrets from a log line, so
// that every user may read it.
func clean(line string) string {
	line = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(line, "\ufffd"))
	words := strings.Fields(line)
	for i := range words {
		words[i] = cleanWord(words[i])
		if i > 0 && strings.HasSuffix(strings.Trim(words[i-1], `"'`), "--password") {
			words[i] = hidden
		}
	}
	return strings.Join(words, " ")
}

// cleanWord hides the content of data URLs, the user and the query of others,
// hashes of passwords, crypt(5), and what is long enough for a key.
func cleanWord(w string) string {
	if before, _, ok := strings.Cut(w, "data:"); ok {
		return before + "data:" + hidden
	}
	if scheme, rest, ok := strings.Cut(w, "://"); ok {
		if i := strings.IndexAny(rest, "?#"); i >= 0 {
			end := len(strings.TrimRight(rest, `"':,;`))
			rest = rest[:i+1] + hidden + rest[max(end, i+1):]
		}
		host, _, _ := strings.Cut(rest, "/")
		if i := strings.LastIndex(host, "@"); i >= 0 {
			rest = hidden + rest[i:]
		}
		return scheme + "://" + rest
	}
	if parts := strings.SplitN(w, "$", 3); len(parts) == 3 && parts[1] != "" && len(parts[1]) <= 8 {
		return parts[0] + hidden
	}
	if strings.HasPrefix(strings.TrimLeft(w, `"'`), "/") {
		return w // a path
	}
	run := 0
	for i := range len(w) {
		if run++; !inKey(w[i]) {
			run = 0
		}
		if run == minSecret {
			return w[:i+1-minSecret] + hidden
		}
	}
	return w
}

// inKey reports whether a byte occurs in base64 or hex.
func inKey(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("+/=_", c) >= 0
}
