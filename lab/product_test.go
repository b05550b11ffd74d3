package lab_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/program"
)

const (
	binary  = "../bin/nm-azure-dispatch"
	gate    = "../packaging/rpm/90-nm-azure-dispatch"
	service = "../packaging/systemd/nm-azure-checkin.service"
	timer   = "../packaging/systemd/nm-azure-checkin.timer"
)

// build makes the program, as make build does.
var build = sync.OnceValue(func() error {
	_, err := program.Build("../bin", "0.0.0")
	return err
})

// product is what a package would install.
func product(t *testing.T) *lab.Product {
	t.Helper()
	ok(t, build())
	return &lab.Product{Binary: binary, Gate: gate, Units: []string{service, timer}}
}

// startProduct makes a lab with the product in it.
func startProduct(t *testing.T, suite string, c lab.Config) *lab.Lab {
	t.Helper()
	c.Suite, c.Product = suite, product(t)
	return start(t, c)
}

// up waits until the dispatcher is done with an interface's up event.
func up(t *testing.T, l *lab.Lab, nic string) {
	t.Helper()
	times(t, l, 1, "up", nic)
}

// times waits until the dispatcher is done with n events of the kind.
func times(t *testing.T, l *lab.Lab, n int, action, nic string) {
	t.Helper()
	eventually(t, l, fmt.Sprintf("%s %s has come %d times", nic, action, n), func(context.Context) error {
		events, err := l.Guest.Events()
		if err != nil {
			return err
		}
		if got := count(events, action, nic); got < n {
			return fmt.Errorf("it has come %d times: %v", got, actions(events, nic))
		}
		return nil
	})
}

func count(events []lab.Event, action, nic string) int {
	n := 0
	for _, a := range actions(events, nic) {
		if a == action {
			n++
		}
	}
	return n
}

// outcome is what came of a lab.
type outcome struct {
	requests []string // at the WireServer
	dns      string   // what resolved has for eth0
	kinds    []string // of our journal entries, in order of their names; nil: it depends
}

const (
	goalState = "GET /machine/?comp=goalstate"
	health    = "POST /machine/?comp=health"
	leaseDNS  = "168.63.129.16 10.77.0.1"
)

var once = []string{goalState, health} // one check-in

// check compares what came with what should have.
func check(t *testing.T, l *lab.Lab, want outcome) {
	t.Helper()
	got := outcome{requests: requests(t, l), dns: linkDNS(t, l, "eth0")}
	if want.kinds != nil {
		got.kinds = kinds(t, l)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("outcome (-want +got):\n%s\n%s", diff, l.Dump(t.Context()))
	}
}

func requests(t *testing.T, l *lab.Lab) (out []string) {
	t.Helper()
	log := l.Cloud.Requests()
	for _, r := range log {
		out = append(out, r.Method+" "+r.Path)
	}
	return out
}

// linkDNS is what resolved has for an interface; "" if there is no resolved.
func linkDNS(t *testing.T, l *lab.Lab, nic string) string {
	t.Helper()
	out, err := l.Guest.Run(t.Context(), "resolvectl", "dns", nic)
	if err != nil {
		return ""
	}
	_, servers, _ := strings.Cut(out, "):")
	return strings.TrimSpace(servers)
}

// entry is an entry of ours in the journal.
type entry struct {
	Identifier string `json:"SYSLOG_IDENTIFIER"`
	ID         string `json:"MESSAGE_ID"`
	Message    string `json:"MESSAGE"`
	Priority   string `json:"PRIORITY"`
	Server     string `json:"NM_AZURE_WIRESERVER"`
	Source     string `json:"NM_AZURE_SOURCE"`
	Reason     string `json:"NM_AZURE_REASON"`
}

// entries reads our entries from the guest's journal, with those that journald has not written yet.
func entries(t *testing.T, l *lab.Lab) (out []entry) {
	t.Helper()
	_, _ = l.Guest.Run(t.Context(), "timeout", "10", "journalctl", "--sync") // fails where a test has no journald
	text := run(t, l, "journalctl", "-t", "nm-azure-dispatch", "-o", "json", "--no-pager")
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		if !strings.HasPrefix(s.Text(), "{") {
			continue // "-- No entries --"
		}
		var e entry
		ok(t, json.Unmarshal(s.Bytes(), &e))
		out = append(out, e)
	}
	return out
}

func kinds(t *testing.T, l *lab.Lab) []string {
	t.Helper()
	out := []string{}
	for _, e := range entries(t, l) {
		out = append(out, kindOf(e.ID))
	}
	slices.Sort(out)
	return out
}

func kindOf(id string) string {
	for _, k := range journal.Kinds() {
		if k.ID == id {
			return k.Name
		}
	}
	return "unknown " + id
}

// find returns the entry of a kind; it fails the test if there is none.
func find(t *testing.T, l *lab.Lab, kind string) entry {
	t.Helper()
	for _, e := range entries(t, l) {
		if kindOf(e.ID) == kind {
			return e
		}
	}
	t.Fatalf("no entry %s in the journal\n%s", kind, l.Dump(t.Context()))
	return entry{}
}

// quiet is a NetworkManager that does not push to resolved: what the product is
// there for.
func quiet() lab.Config { return lab.Config{DNS: "none", ToResolved: "false"} }
