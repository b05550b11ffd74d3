package cloud

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/lab/internal/inside"
)

// Wire is the service that controls the WireServer.
type Wire struct {
	mu  sync.Mutex
	log []WireRequest
}

// WireRequest is a request that the WireServer got.
type WireRequest struct {
	Time               time.Time
	Method, Path, Body string
	Server, Client     string
	Header             http.Header
}

func startWire() (*Wire, error) {
	w := &Wire{}
	l, err := net.Listen("tcp", ":80")
	if err != nil {
		return nil, fmt.Errorf("WireServer: %w", err)
	}
	go func() { _ = http.Serve(l, w) }()
	return w, nil
}

// Log is every request so far.
func (w *Wire) Log(_ inside.None, log *[]WireRequest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	*log = append(*log, w.log...)
	return nil
}

// ServeHTTP answers as the WireServer does.
func (w *Wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	server, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	w.mu.Lock()
	w.log = append(w.log, WireRequest{
		time.Now(), r.Method, r.URL.String(), string(body), server.String(), r.RemoteAddr, r.Header,
	})
	w.mu.Unlock()
	if r.Method == http.MethodGet {
		fmt.Fprint(rw, `<?xml version="1.0" encoding="utf-8"?>
<GoalState><Version>2012-11-30</Version><Incarnation>1</Incarnation><Container><ContainerId>c</ContainerId>
<RoleInstanceList><RoleInstance><InstanceId>i</InstanceId></RoleInstance></RoleInstanceList></Container></GoalState>`)
	}
}
