package doctor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/golden"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/schematest"
)

// The output for people, and the JSON, of a machine that is well, of one with
// several faults, and of one that is not Azure.
func TestOutput(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *machine.Snapshot)
	}{
		{"well", func(*machine.Snapshot) {}},
		{"warned", func(s *machine.Snapshot) { s.NM.V.Version = "1.42.4" }},
		{"broken", func(s *machine.Snapshot) {
			s.Units.V[machine.UnitDispatcher] = machine.Unit{File: "disabled"}
			unreached(syscall.EHOSTUNREACH)(s)
			s.NM.V.Devices[0].Profile.Method, s.NM.V.Devices[0].Lease = "manual", nil
			s.Units.V[machine.UnitCheckIn] = machine.Unit{File: "static", Active: "inactive"}
			s.Probes.File.V[0].Rcode, s.Probes.LookUp.Err = 2, errors.New("hostile \x1b[31m\x00text <&>")
		}},
		{"not-azure", func(s *machine.Snapshot) {
			*s = machine.Snapshot{Platform: machine.Platform{Why: "ignition.platform.id=qemu"}}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := judge(tt.change)
			var plain, colour bytes.Buffer
			if err := errors.Join(r.Print(&plain, false), r.Print(&colour, true)); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", tt.name+".txt"), plain.String())
			for line := range strings.Lines(plain.String()) {
				command := strings.HasPrefix(line, "     ") && !strings.HasPrefix(line, "      ") // whole, to be copied
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > term.Width && !command {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			if strings.Contains(plain.String(), "\x1b") {
				t.Error("an escape sequence in plain output")
			}
			if got := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(colour.String()); got != plain.String() {
				t.Errorf("in colour it reads\n%s", got)
			}
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(r); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", tt.name+".json"), b.String())
			schematest.Check(t, "../../docs/schema/doctor.json", r)
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestPrintFails(t *testing.T) {
	r := judge()
	if err := r.Print(full{}, false); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error is %v", err)
	}
}
