package journal

import (
	"io"
	"log/slog"
)

// NewText returns a Journal that writes text even where journald is there.
func NewText(w io.Writer) *Journal {
	return start(func() slog.Handler { return text{w} }, w)
}
