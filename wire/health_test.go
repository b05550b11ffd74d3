package wire_test

import (
	"encoding/json"
	"encoding/xml"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/golden"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

func TestHealth(t *testing.T) {
	gs := wire.GoalState{Incarnation: "7", ContainerID: "2a5f3c1e <c>", InstanceID: `R&D "<vm>"`}
	tests := []struct {
		name   string
		health wire.Health
	}{
		{"ready", wire.Ready()},
		{"provisioning-failed", wire.ProvisioningFailed("Ignition: \"disks\" failed:\n<no space left> & more — see serial console")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			golden.Check(t, filepath.Join("testdata", tt.name+".xml"), string(tt.health.XML(gs)))
			golden.Check(t, filepath.Join("testdata", tt.name+".json"), string(tt.health.JSON())+"\n")
		})
	}
}

// The platform's limit is 4096 bytes on the wire, so what counts is the length
// after escaping.
func TestProvisioningFailedDescription(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"short", "no disk", "no disk"},
		{"at the limit", strings.Repeat("é", 512), strings.Repeat("é", 512)},
		{"over the limit", strings.Repeat("é", 513), strings.Repeat("é", 512)},
		{"not UTF-8", "no \xff\xfe disk", "no \ufffd disk"},
		{"dear in XML", strings.Repeat(`"`, 600), strings.Repeat(`"`, 512)},
		{"dear in JSON", strings.Repeat("\x01", 600), strings.Repeat("\x01", 512)},
		{"four bytes each", strings.Repeat("\U0001f4a5", 600), strings.Repeat("\U0001f4a5", 512)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := wire.ProvisioningFailed(tt.in)
			want := wire.Health{State: "NotReady", Description: tt.want}
			if diff := cmp.Diff(want, h); diff != "" {
				t.Errorf("health (-want +got):\n%s", diff)
			}

			doc := h.XML(wire.GoalState{})
			if err := xml.Unmarshal(doc, new(struct{})); err != nil {
				t.Errorf("XML: %v", err)
			}
			if !utf8.Valid(doc) {
				t.Error("XML is not UTF-8")
			}
			_, rest, _ := strings.Cut(string(doc), "<Description>")
			description, _, _ := strings.Cut(rest, "</Description>")
			if len(description) > 4096 {
				t.Errorf("XML description is %d bytes long", len(description))
			}

			body := h.JSON()
			if !json.Valid(body) {
				t.Errorf("JSON: %s", body)
			}
			if len(body) > 4096 {
				t.Errorf("JSON is %d bytes long", len(body))
			}
		})
	}
}
