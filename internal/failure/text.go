package failure

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marks of what was left out.
const (
	hidden   = "[...]"
	cutShort = "..."
)

// minSecret is how long a run of letters and digits is that is taken for a key.
const minSecret = 40

// Text describes the units in at most limit characters: each gets an equal
// share of what those before it have left.
func Text(what string, units []Unit, limit int) string {
	var b strings.Builder
	b.WriteString(clean(what))
	shown := units[:min(len(units), maxUnits)]
	rest := ""
	if n := len(units) - len(shown); n > 0 {
		rest = fmt.Sprintf("; and %d more", n)
	}
	for i, u := range shown {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		share := (limit - utf8.RuneCountInString(b.String()+rest)) / (len(shown) - i)
		b.WriteString(shorten(separator+u.text(share), share))
	}
	return shorten(b.String()+rest, limit)
}

// text is the unit and as many of its lines as fit, and that say more.
func (u Unit) text(limit int) string {
	text := clean(u.Name)
	separator := ": "
	for _, line := range u.Lines {
		line = clean(line)
		if line == "" || strings.Contains(text, line) {
			continue
		}
		if separator != ": " && utf8.RuneCountInString(text+separator+line) > limit {
			break
		}
		text += separator + line
		separator = " / "
	}
	return text
}

// shorten cuts a text to at most limit characters.
func shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:max(limit-len(cutShort), 0)]) + cutShort
}

// clean makes a line that anyone may read of one that anyone may have written:
// no control characters, and none of the secrets that are known to get into
// logs.
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

// cleanWord leaves out of a word the content of data URLs, what follows the
// path of other URLs and who may read them, the hashes of passwords, crypt(5),
// and whatever is long enough for a key.
func cleanWord(w string) string {
	if before, _, ok := strings.Cut(w, "data:"); ok {
		return before + "data:" + hidden
	}
	if scheme, rest, ok := strings.Cut(w, "://"); ok {
		if i := strings.IndexAny(rest, "?#"); i >= 0 {
			rest = rest[:i+1] + hidden
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
		return w
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
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '=' || c == '_'
}
