package faults

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/kvp"
)

const (
	sampling = 100 * ms // between two looks at the record for Azure's host
	// lateSamples is how many looks in a row may find it untrue: the program, or this one, may have to wait for a processor.
	// The shortest pause after two failures is longer.
	lateSamples = 2
)

// makePool makes an empty pool for the host's record, whatever this machine has.
func makePool() error {
	if err := syscall.Mount("lib", "/var/lib", "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Dir(kvp.Path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(kvp.Path, nil, 0o644)
}

// hostResult is what the host would read now: "success", "error", or "" for no record.
func hostResult() string {
	pool, _ := os.ReadFile(kvp.Path)
	_, value, _ := bytes.Cut(pool, []byte("result="))
	result, _, _ := bytes.Cut(value, []byte("|"))
	return string(result)
}

// attempts is what the program has recorded of them; there may be nothing.
type attempts struct {
	Attempts  int
	LastError string `json:"last_error"`
}

func record() (a attempts) {
	b, _ := os.ReadFile("/run/nm-azure-dispatch/check-in.json")
	_ = json.Unmarshal(b, &a)
	return a
}

// watchHost samples the host's record until the end, and returns how many samples were untrue.
func (s *servers) watchHost(end <-chan struct{}) (untrue int) {
	for row := 0; ; {
		select {
		case <-end:
			return untrue
		case <-time.After(sampling):
		}
		if s.hostIsTrue() {
			row = 0
		} else if row++; row > lateSamples {
			untrue++
		}
	}
}

// hostIsTrue reports whether the host's record says success only while a POST is under way or after one was accepted, and
// error after an attempt that failed.
func (s *servers) hostIsTrue() bool {
	result, failed := hostResult(), record().LastError != ""
	return s.posting() || result == "error" || result == "" && !failed
}
