package doctor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/schematest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// The output for people, and the JSON, of a machine that is well, of one with
// several faults, and of one that is not Azure.
func TestOutput(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, w *world)
	}{
		{"well", func(*testing.T, *world) {}},
		{"warned", func(_ *testing.T, w *world) { w.nm.Version = "1.42.4" }},
		{"broken", func(t *testing.T, w *world) {
			w.units["NetworkManager-dispatcher.service"] = live.Unit{File: "disabled"}
			w.nm.Devices[0].Method, w.nm.Devices[0].Lease = "manual", nil
			w.hang["tcp"] = true
			w.record(t, boot.CheckIn{State: boot.Trying, Attempts: 3, LastError: "wire: GET http://168.63.129.16/machine/?comp=goalstate: dial tcp 168.63.129.16:80: i/o timeout"})
			w.lookUpErr = errors.New("hostile \x1b[31m\x00text <&>")
		}},
		{"not-azure", func(_ *testing.T, w *world) { w.files["proc/cmdline"] = file("ignition.platform.id=qemu") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := healthy(t)
			tt.change(t, w)
			var r doctor.Report
			synctest.Test(t, func(t *testing.T) { r = doctor.NewReport(doctor.Run(t.Context(), w.env())) })
			var plain, colour bytes.Buffer
			if err := errors.Join(r.Print(&plain, false), r.Print(&colour, true)); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name+".txt", plain.String())
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
			golden(t, tt.name+".json", b.String())
			schematest.Check(t, "../../docs/schema/doctor.json", r)
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestPrintFails(t *testing.T) {
	r := doctor.NewReport([]doctor.Step{{Name: "platform", Verdict: doctor.OK, Seen: "x"}})
	if err := r.Print(full{}, false); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error is %v", err)
	}
}

func TestPickInterface(t *testing.T) {
	w := healthy(t)
	pick := func(want string) {
		t.Helper()
		if got := doctor.PickInterface(w.files); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	pick("eth0")
	w.files["proc/net/route"] = file(strings.ReplaceAll(routes, "eth0", "ens3"))
	pick("ens3")
	delete(w.files, "proc/net/route")
	w.files["sys/class/net/lo/type"] = file("772\n")
	w.files["sys/class/net/docker0/type"] = file("1\n")
	w.files["sys/class/net/docker0/bridge/x"] = file("")
	w.files["sys/class/net/enP1/type"] = file("1\n")
	w.files["sys/class/net/enP1/master"] = symlink("../eth0")
	pick("eth0")
	w.files["sys/class/net/eth9/type"] = file("1\n")
	w.files["sys/class/net/eth9/device/x"] = file("")
	pick("eth9")
	for name := range w.files {
		if strings.HasPrefix(name, "sys/") {
			delete(w.files, name)
		}
	}
	pick("")
}
