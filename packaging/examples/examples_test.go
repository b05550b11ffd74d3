// Package examples_test does what the examples say.
package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
)

// Butane turns the example into a configuration of Ignition, without a warning.
func TestButane(t *testing.T) {
	text, err := os.ReadFile("fcos.bu")
	if err != nil {
		t.Fatal(err)
	}
	ignition, report, err := config.TranslateBytes(text, common.TranslateBytesOptions{})
	if err != nil || len(report.Entries) > 0 {
		t.Fatal(err, report.String())
	}
	for _, want := range []string{"layer-nm-azure-dispatch.service", `Wants=network-online.target\nAfter=network-online.target`} {
		if !bytes.Contains(ignition, []byte(want)) {
			t.Errorf("no %s in %s", want, ignition)
		}
	}
}

// The commands in the Containerfile's head, with buildah in place of podman, a file in place of the package, and a base
// whose dnf only writes down what it was called with.
func TestContainerfile(t *testing.T) {
	if _, err := exec.LookPath("buildah"); err != nil || os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("needs buildah and root")
		}
		t.Skip("needs buildah and root: apt-get install buildah")
	}
	dir := t.TempDir()
	containerfile, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\nbuildah() { command buildah --root " + dir + "/storage --runroot " + dir + "/run --storage-driver vfs \"$@\"; }\n" + stub
	commands := regexp.MustCompile(`(?m)^#   (.*)\n`).FindAllSubmatch(containerfile, -1)
	for _, c := range commands {
		script += strings.NewReplacer("podman build", "buildah build --isolation chroot", "BASE=IMAGE", "BASE=localhost/stub", "MINE", "mine").
			Replace(string(c[1])) + "\n"
	}
	if len(commands) < 2 {
		t.Fatalf("no commands in the Containerfile: %s", script)
	}
	script += "cd $(buildah mount $(buildah from localhost/mine))\ncat log; find tmp usr/lib/systemd -type f"
	for to, from := range map[string]string{"packaging/examples/Containerfile": "Containerfile", "packaging/examples/39-nm-azure-dispatch.preset": "39-nm-azure-dispatch.preset"} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, to), string(b))
	}
	write(t, dir+"/dist/nm-azure-dispatch-0.2.0-1.x86_64.rpm", "")
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.Bytes())
	}
	const want = `install -y /tmp/nm-azure-dispatch-0.2.0-1.x86_64.rpm
clean all
usr/lib/systemd/system-preset/39-nm-azure-dispatch.preset
`
	if !strings.HasSuffix(string(out), want) {
		t.Errorf("got %s\nwant at its end %s", out, want)
	}
}

// stub makes the base: the host's sh and rm, what they are linked with, and a dnf.
const stub = `mkdir -p base/usr/bin base/tmp
ln -s usr/bin base/bin
cp --dereference --parents $(ldd /bin/sh /bin/rm | grep -o '/[^ :]*' | sort -u) base/
cp --dereference /bin/sh /bin/rm base/usr/bin/
printf '#!/bin/sh\necho "$@" >>/log\n' >base/usr/bin/dnf
chmod 755 base/usr/bin/dnf
new=$(buildah from scratch)
buildah copy --quiet $new base / >/dev/null
buildah commit --quiet $new stub >/dev/null
`

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
