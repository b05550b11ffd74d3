package dracut_test

import (
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

const (
	azure    = "ignition.platform.id=azure "
	first    = "ignition.firstboot "
	azureTag = "7783-7084-3265-9085-8269-3286-77"
	noRoot   = "root=LABEL=nothing "

	userConfig = "usr/lib/ignition/user.ign"
	emptyCase  = `{"ignition":{"version":"3.3.0"}}`
	badPath    = `{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"relative"}]}}`
)

// remote is a configuration that is to be fetched.
func remote(url string) string {
	return `{"ignition":{"version":"3.3.0","config":{"replace":{"source":"` + url + `"}}}}`
}

// shown is the error in docs/images.md, without the end.
func shown(t *testing.T) string {
	t.Helper()
	docs, err := os.ReadFile("../../docs/images.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)refuses:\n\n(.*?) / \.\.\.\n`).FindSubmatch(docs)
	if block == nil {
		t.Fatal("docs/images.md shows no error")
	}
	return strings.Join(strings.Fields(string(block[1])), " ")
}

// The failures that are reported. In each the initrd was made by dracut with the module in it (row 4 of issue 13).
func TestReported(t *testing.T) {
	tests := []struct {
		name, config, cmdline, tag string
		files                      map[string]string
		want                       []string
		quick                      bool
	}{
		{
			name: "before the network", config: badPath, cmdline: azure + first + noRoot, quick: true,
			want: []string{shown(t), "failed: ignition-fetch-offline.service: ", "error at $.storage.files.0.path, line 1 col 61: path not absolute"},
		},
		{
			name: "configuration is not there", config: remote("http://user:s3cret@168.63.129.16/none.ign?sig=s3cret"), cmdline: azure + first + noRoot, quick: true,
			want: []string{"failed: ignition-fetch.service: ", "http://[...]@168.63.129.16/none.ign?[...]", "Not Found"},
		},
		{
			name: "asset tag, no argument", config: badPath, cmdline: first + noRoot, tag: azureTag,
			want: []string{"failed: ignition-fetch-offline.service: "},
		},
		{
			name: "no root device", config: emptyCase, cmdline: azure + first + noRoot + "rd.retry=10",
			want: []string{"still starting after ", "dracut-initqueue.service: "},
		},
		{
			name: "root device does not come in time", config: emptyCase, cmdline: azure + first + noRoot + "rd.timeout=20",
			want: []string{`failed: Timed out waiting for device dev-disk-by\x2dlabel-nothing.device - /dev/disk/by-label/nothing`},
		},
		{
			name: "root file system cannot be mounted", config: emptyCase, cmdline: azure + first + "root=/dev/vda rootfstype=squashfs",
			want: []string{"sysroot.mount: ", "/sysroot"},
		},
		{
			name: "takes too long", config: remote("http://10.77.0.1:81/c.ign?sig=s3cret"), cmdline: azure + first + noRoot + "rd.nm-azure-dispatch.report-after=2min",
			want: []string{"still starting after ", "ignition-fetch.service: ", "http://10.77.0.1:81/c.ign?[...]", "connection refused"},
		},
		{
			name: "later boot of an image that wants it", cmdline: azure + noRoot + "rd.nm-azure-dispatch.report=always", files: failing("boom"),
			want: []string{"failed: failing.service: boom"},
		},
	}
	for _, s := range stacks {
		for _, tt := range tests {
			t.Run(s.name+"/"+tt.name, func(t *testing.T) {
				if *quick && !(tt.quick && s.name == "networkd") {
					t.Skip("not one of the quickest")
				}
				files := map[string]string{userConfig: tt.config}
				maps.Copy(files, tt.files)
				got := s.start(t, lab.Config{Cmdline: tt.cmdline, AssetTag: tt.tag}, files).failure()
				for _, want := range tt.want {
					if !strings.Contains(got, want) {
						t.Errorf("no %q in: %s", want, got)
					}
				}
				if strings.Contains(got, "s3cret") || utf8.RuneCountInString(got) > 512 {
					t.Errorf("a secret, or more than 512 characters: %s", got)
				}
			})
		}
	}
}

// failing is a unit that the initrd needs, and that fails until /run/fixed is there.
func failing(why string) map[string]string {
	return map[string]string{
		"usr/lib/systemd/system/failing.service": `[Unit]
DefaultDependencies=no
After=basic.target
Before=initrd.target
ConditionPathExists=!/run/fixed
OnFailure=emergency.target
OnFailureJobMode=isolate
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo ` + why + `; exit 1'
`,
		"usr/lib/systemd/system/initrd.target.requires/failing.service": "->../failing.service",
	}
}

// Where nothing is to be reported: another platform, a boot that provisions nothing, a shell that was asked for.
func TestNotReported(t *testing.T) {
	tests := []struct{ name, cmdline, tag string }{
		{"another platform", "ignition.platform.id=qemu " + first + noRoot, ""},
		{"later boot", azure + noRoot, azureTag},
		{"rd.break", azure + first + "root=/dev/vda rd.break=pre-mount", ""},
	}
	for _, s := range stacks {
		for _, tt := range tests {
			t.Run(s.name+"/"+tt.name, func(t *testing.T) {
				if *quick {
					t.Skip("not one of the quickest")
				}
				files := failing("boom")
				if strings.Contains(tt.cmdline, "rd.break") {
					files = map[string]string{userConfig: emptyCase}
				}
				m := s.start(t, lab.Config{Cmdline: tt.cmdline, AssetTag: tt.tag}, files)
				m.waitConsole("Emergency Shell")
				time.Sleep(20 * time.Second) // a report would take half of it
				if requests := m.Cloud.Requests(); len(requests) > 0 {
					t.Errorf("requests %+v", requests)
				}
			})
		}
	}
}

// recovery does what a person does at the emergency shell once the failure was reported.
var recovery = map[string]string{
	"usr/lib/systemd/system/recovery.service": `[Unit]
DefaultDependencies=no
[Service]
ExecStart=/bin/sh -c 'until grep -q failed /run/nm-azure-dispatch/check-in.json; do sleep 1; done; : >/run/fixed; systemctl --no-block default'
`,
	"usr/lib/systemd/system/emergency.target.wants/recovery.service": "->../recovery.service",
}

// A failure that was reported from the initrd does not keep the real root from reporting Ready.
func TestRecovery(t *testing.T) {
	for _, s := range stacks {
		t.Run(s.name, func(t *testing.T) {
			if *quick && s.name != "networkd" {
				t.Skip("not one of the quickest")
			}
			files := failing("boom")
			maps.Copy(files, recovery)
			m := s.start(t, lab.Config{Cmdline: azure + "root=/dev/vda rw rd.nm-azure-dispatch.report=always"}, files)
			posts := m.posts(2)
			if got, want := description(t, posts[0]), "failed: failing.service: boom"; got != want {
				t.Errorf("reported %q, want %q", got, want)
			}
			if !strings.Contains(posts[1], "<State>Ready</State>") && posts[1] != `{"state":"Ready"}` {
				t.Errorf("no Ready: %s", posts[1])
			}
		})
	}
}

// Ready means that the real root's network is up: not the initrd's address that is still there when the timer's minute is over.
func TestSlowInitrd(t *testing.T) {
	for _, s := range stacks {
		t.Run(s.name, func(t *testing.T) {
			if *quick {
				t.Skip("not one of the quickest")
			}
			m := s.start(t, lab.Config{
				Cmdline: azure + "root=/dev/vda rw",
				Files:   map[string]string{"/etc/systemd/system/NetworkManager.service.d/late.conf": "[Service]\nExecStartPre=/bin/sleep 15\n"},
			}, map[string]string{
				"usr/lib/systemd/system/slow.service": `[Unit]
DefaultDependencies=no
After=network.target
Before=initrd.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'until [ "$(sed "s/[.].*//" /proc/uptime)" -ge 65 ]; do sleep 1; done'
`,
				"usr/lib/systemd/system/initrd.target.requires/slow.service": "->../slow.service",
			})
			if err := m.WaitBooted(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.posts(1)
			number := func(script string) int {
				out, err := m.Run(t.Context(), "sh", "-c", script)
				if err != nil {
					t.Fatal(err)
				}
				n, err := strconv.Atoi(out)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			ready := number(`sed -n 's/.*"after_boot_ms": *\([0-9]*\).*/\1/p' /run/nm-azure-dispatch/check-in.json`)
			network := number("systemctl show --value -p ActiveEnterTimestampMonotonic NetworkManager") / 1000
			if ready < network {
				t.Errorf("Ready %d ms after boot, but NetworkManager ran only after %d ms", ready, network)
			}
		})
	}
}
