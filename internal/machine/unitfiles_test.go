package machine_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

func TestUnitFiles(t *testing.T) {
	link := func(target string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
	}
	unit := &fstest.MapFile{Data: []byte("[Unit]\n"), Mode: 0o644}
	const name = "NetworkManager-dispatcher.service"
	tests := []struct {
		name string
		root fstest.MapFS
		want string
	}{
		{"absent", fstest.MapFS{}, ""},
		{"disabled", fstest.MapFS{"usr/lib/systemd/system/" + name: unit}, "disabled"},
		{"enabled by its alias", fstest.MapFS{
			"usr/lib/systemd/system/" + name:                                unit,
			"etc/systemd/system/dbus-org.freedesktop.nm-dispatcher.service": link("/usr/lib/systemd/system/" + name),
		}, "enabled"},
		{"enabled in a wants directory", fstest.MapFS{
			"lib/systemd/system/" + name:                               unit,
			"etc/systemd/system/multi-user.target.wants/" + name:       link("/lib/systemd/system/" + name),
			"etc/systemd/system/multi-user.target.wants/other.service": link("/lib/systemd/system/other.service"),
		}, "enabled"},
		{"masked by a link", fstest.MapFS{"etc/systemd/system/" + name: link("/dev/null"), "usr/lib/systemd/system/" + name: unit}, "masked"},
		{"masked by an empty file", fstest.MapFS{"etc/systemd/system/" + name: &fstest.MapFile{}, "usr/lib/systemd/system/" + name: unit}, "masked"},
		{"another unit's alias", fstest.MapFS{"usr/lib/systemd/system/" + name: unit, "etc/systemd/system/x.service": link("/lib/systemd/system/y.service")}, "disabled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := machine.UnitFiles(tt.root, []string{name})[name].File; got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestOn(t *testing.T) {
	for u, want := range map[machine.Unit]bool{
		{}: false, {File: "disabled"}: false, {File: "static"}: false, {File: "masked", Active: "inactive"}: false,
		{File: "enabled"}: true, {File: "disabled", Active: "active"}: true, {Active: "activating"}: true, {File: "disabled", Active: "failed"}: false,
	} {
		if got := u.On(); got != want {
			t.Errorf("%+v: %v, want %v", u, got, want)
		}
	}
}
