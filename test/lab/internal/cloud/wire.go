package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab/internal/inside"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// Wire is the service that controls the WireServer.
type Wire struct {
	mu      sync.Mutex
	stop    func()             // nil: nothing listens
	servers []*wiretest.Server // all there were; the last one answers
}

func startWire() (*Wire, error) {
	w := &Wire{}
	return w, w.Play("{}", nil)
}

// Play starts a WireServer with a script in JSON, in the place of the one there was. (The codec of the calls would lose
// what the script points to, if that is empty.)
func (w *Wire) Play(script string, _ *inside.None) error {
	var s wiretest.Script
	if err := json.Unmarshal([]byte(script), &s); err != nil {
		return fmt.Errorf("script of the WireServer: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.close()
	l, err := net.Listen("tcp4", ":80")
	if err != nil {
		return fmt.Errorf("WireServer: %w", err)
	}
	server := wiretest.New(s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(ctx, l)
	}()
	w.stop = func() { cancel(); <-done }
	w.servers = append(w.servers, server)
	return nil
}

// Close makes the WireServer refuse connections.
func (w *Wire) Close(_ inside.None, _ *inside.None) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.close()
	return nil
}

func (w *Wire) close() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// Log is every request so far.
func (w *Wire) Log(_ inside.None, log *[]wiretest.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, server := range w.servers {
		*log = append(*log, server.Requests()...)
	}
	return nil
}
