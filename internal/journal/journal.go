// Package journal writes entries to journald in its native protocol, or as text if
// journald is not running, and never blocks the program.
package journal

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	slogjournal "github.com/systemd/slog-journal"
)

// Identifier is SYSLOG_IDENTIFIER of every entry: journalctl -t.
const Identifier = "nm-azure-dispatch"

// Fields of an entry, systemd.journal-fields(7). All others get the prefix.
const (
	fieldMessageID  = "MESSAGE_ID"
	fieldIdentifier = "SYSLOG_IDENTIFIER"
	fieldPrefix     = "NM_AZURE_"
)

// socketPath is the socket of journald. slog-journal uses the same path and treats a
// missing socket as success, so it is checked here.
const socketPath = "/run/systemd/journal/socket"

const (
	queueLength = 64   // entries that wait for journald; further ones are dropped
	maxText     = 2048 // bytes of one entry's MESSAGE
)

// Journal takes entries. The zero value is not usable; see New.
type Journal struct {
	queue chan slog.Record
	done  chan struct{}
}

// New returns a Journal. argv0 is os.Args[0]: slog-journal takes its base name
// for SYSLOG_IDENTIFIER, which is wrong under another name in dispatcher.d.
// Text is written to stderr if journald is not running.
//
// A write to a full journald blocks without limit, so one goroutine writes the
// entries from a queue that drops what does not fit. Nothing is opened before the
// first entry.
func New(argv0 string, stderr io.Writer) *Journal {
	return start(func() (slog.Handler, error) { return open(argv0) }, stderr)
}

// start is New with the handler that open makes at the first entry.
func start(open func() (slog.Handler, error), stderr io.Writer) *Journal {
	j := &Journal{queue: make(chan slog.Record, queueLength), done: make(chan struct{})}
	go func() {
		defer close(j.done)
		var h slog.Handler
		var err error
		for r := range j.queue {
			if h == nil && err == nil {
				h, err = open()
			}
			if err == nil {
				err = h.Handle(context.Background(), r)
			}
			if err != nil && r.Level >= slog.LevelInfo {
				_, _ = fmt.Fprintf(stderr, "%s: %s\n", Identifier, r.Message)
			}
		}
	}()
	return j
}

func open(argv0 string) (slog.Handler, error) {
	if _, err := os.Stat(socketPath); err != nil {
		return nil, err
	}
	h, err := slogjournal.NewHandler(&slogjournal.Options{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key != fieldMessageID && a.Key != fieldIdentifier {
				a.Key = fieldPrefix + strings.ToUpper(a.Key)
			}
			return a
		},
	})
	if err != nil || filepath.Base(argv0) == Identifier {
		return h, err
	}
	return h.WithAttrs([]slog.Attr{slog.String(fieldIdentifier, Identifier)}), nil
}

// Log queues an entry. Keys are lower case ("last_error" becomes
// NM_AZURE_LAST_ERROR). An attribute with an empty value is left out. MESSAGE
// is the kind's message and the attributes behind it, so that it can be read
// without the fields. It never blocks and must not be called after Close.
func (j *Journal) Log(k Kind, attrs ...slog.Attr) {
	var msg strings.Builder
	msg.WriteString(k.Message)
	sep := ": "
	kept := attrs[:0:0]
	for _, a := range attrs {
		v := a.Value.String()
		if v == "" {
			continue
		}
		kept = append(kept, a)
		if strings.ContainsAny(v, " \t\n\"=") {
			v = fmt.Sprintf("%q", v)
		}
		fmt.Fprintf(&msg, "%s%s=%s", sep, a.Key, v)
		sep = " "
	}
	text := msg.String()
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	r := slog.NewRecord(time.Time{}, k.Level, text, 0)
	r.AddAttrs(slog.String(fieldMessageID, k.ID))
	r.AddAttrs(kept...)
	select {
	case j.queue <- r:
	default:
	}
}

// Close waits until the queue is written, or for the given time.
func (j *Journal) Close(limit time.Duration) {
	close(j.queue)
	select {
	case <-j.done:
	case <-time.After(limit):
	}
}
