package failure

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxUnits = 4       // of more, only the number is in the text
	minKey   = 40      // consecutive letters and digits that may be a key
	hidden   = "[...]" // in place of a secret
)

// Unit is a failed systemd unit, or another cause of the failure.
type Unit struct {
	Name  string
	Lines []string // what it logged, newest first
}

// Text describes the units in at most limit characters, of which each gets an
// equal share of what those before it have left.
func Text(what string, units []Unit, limit int) string {
	rest := ""
	if n := len(units) - maxUnits; n > 0 {
		units, rest = units[:maxUnits], fmt.Sprintf("; and %d more", n)
	}
	text, separator := clean(what), ": "
	for i, u := range units {
		share := (limit - utf8.RuneCountInString(text+rest)) / (len(units) - i)
		text += cut(separator+u.text(share), share)
		separator = "; "
	}
	return cut(text+rest, limit)
}

// text returns the name and as many lines as fit, without those that the text
// contains already.
func (u Unit) text(limit int) string {
	text, separator := clean(u.Name), ": "
	for _, line := range u.Lines {
		line = clean(line)
		if strings.Contains(text, line) { // the empty line too
			continue
		}
		if separator != ": " && utf8.RuneCountInString(text+separator+line) > limit {
			break
		}
		text, separator = text+separator+line, " / "
	}
	return text
}

// cut shortens a text to at most limit characters.
func cut(s string, limit int) string {
	const ellipsis = "..."
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:max(limit-len(ellipsis), 0)]) + ellipsis
}

// clean removes control characters and known forms of secrets from a log line, so
// that every user may read it.
func clean(line string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(line, "\ufffd"), func(c rune) bool { return c == ' ' || !unicode.IsPrint(c) })
	for i, word := range words {
		words[i] = cleanWord(word)
		if i > 0 && strings.HasSuffix(strings.Trim(words[i-1], `"'`), "--password") {
			words[i] = hidden
		}
	}
	return strings.Join(words, " ")
}

// cleanWord hides the content of data URLs, the user and the query of other URLs,
// password hashes, crypt(5), and what may be a key.
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
	for _, run := range strings.FieldsFunc(w, func(c rune) bool { return !inKey(c) }) {
		if len(run) >= minKey {
			return w[:strings.Index(w, run)] + hidden
		}
	}
	return w
}

// inKey reports whether a character occurs in base64 or hex.
func inKey(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("+/=_", c)
}
