package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The gate starts the program for our events of devices that are no port of another, on machines that can be Azure, and
// starts nothing else. It gets no environment at all, not even PATH.
func TestGate(t *testing.T) {
	gate, err := os.ReadFile("../../packaging/rpm/90-nm-azure-dispatch")
	if err != nil {
		t.Fatal(err)
	}
	const tag = "7783-7084-3265-9085-8269-3286-77"
	tests := []struct {
		name, iface, action, cmdline, tag string
		through                           bool
	}{
		{"first lease", "eth0", "dhcp4-change", "ro ignition.platform.id=azure quiet", "", true},
		{"up", "eth0", "up", "ignition.platform.id=azurestack", "", true},
		{"quoted", "eth0", "reapply", `ignition.platform.id="azure"`, "", true},
		{"by the asset tag", "eth0", "down", "ro", tag, true},
		{"another platform and the asset tag: the program decides", "eth0", "up", "ignition.platform.id=qemu", tag, true},
		{"no command line", "eth0", "up", "", tag, true},
		{"another event", "", "connectivity-change", "ignition.platform.id=azure", tag, false},
		{"pre-up", "eth0", "pre-up", "ignition.platform.id=azure", tag, false},
		{"a port now, and it went down before", "eth1", "down", "ignition.platform.id=azure", tag, true},
		{"port", "eth1", "up", "ignition.platform.id=azure", tag, false},
		{"bond", "eth2", "up", "ignition.platform.id=azure", tag, false},
		{"VRF", "eth3", "up", "ignition.platform.id=azure", tag, true},
		{"another platform", "eth0", "up", "ignition.platform.id=qemu", "", false},
		{"another tag", "eth0", "up", "ro", "To Be Filled By O.E.M.", false},
		{"nothing to go by", "eth0", "up", "", "", false},
	}
	inside(t, func(t *testing.T, m *machine) {
		for _, dir := range []string{"/usr/libexec", "/sys/class"} {
			m.must(syscall.Mount("test", dir, "tmpfs", 0, "mode=755"))
		}
		m.must(os.WriteFile("/usr/libexec/nm-azure-dispatch", []byte("#!/bin/sh\necho \"$@\"\n"), 0o755))
		m.must(os.MkdirAll("/sys/class/net/eth1/master", 0o755))
		for iface, flags := range map[string]string{"eth2": "0x1403", "eth3": "0x4c1"} {
			m.must(os.MkdirAll("/sys/class/net/"+iface+"/master", 0o755))
			m.must(os.WriteFile("/sys/class/net/"+iface+"/master/flags", []byte(flags+"\n"), 0o444))
		}
		m.must(os.MkdirAll("/sys/class/dmi/id", 0o755))
		file := filepath.Join(t.TempDir(), "gate")
		m.must(os.WriteFile(file, gate, 0o755))
		for _, tt := range tests {
			m.cmdline(tt.cmdline)
			m.must(os.RemoveAll("/sys/class/dmi/id/chassis_asset_tag"))
			if tt.tag != "" {
				m.must(os.WriteFile("/sys/class/dmi/id/chassis_asset_tag", []byte(tt.tag+"\n"), 0o444))
			}
			cmd := exec.Command(file, tt.iface, tt.action)
			cmd.Env, cmd.Dir = []string{}, "/"
			out, err := cmd.CombinedOutput()
			want := ""
			if tt.through {
				want = tt.iface + " " + tt.action
			}
			if got := strings.TrimSpace(string(out)); got != want || err != nil {
				t.Errorf("%s: %q, %v; want %q", tt.name, got, err, want)
			}
		}
	})
}
