package azure_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
)

const (
	cmdlinePath  = "proc/cmdline"
	assetTagPath = "sys/class/dmi/id/chassis_asset_tag"
	tag          = "7783-7084-3265-9085-8269-3286-77"
)

// machines are what a machine can say of itself. An empty file is not there.
var machines = []struct {
	name, cmdline, tag string
	want               bool
	why                string
}{
	{name: "nothing to read", why: "no ignition.platform.id=azure on the kernel command line, chassis asset tag absent"},
	{name: "kernel argument", cmdline: "quiet ignition.platform.id=azure ro\n", want: true, why: "ignition.platform.id=azure"},
	{name: "Azure Stack Hub", cmdline: "ignition.platform.id=azurestack", want: true, why: "ignition.platform.id=azurestack"},
	{name: "value quoted", cmdline: `ignition.platform.id="azure"`, want: true, why: "ignition.platform.id=azure"},
	{name: "quoted as a whole", cmdline: `ro "ignition.platform.id=azure" quiet`, want: true, why: "ignition.platform.id=azure"},
	{name: "quote left open", cmdline: `"ignition.platform.id=azure`, want: true, why: "ignition.platform.id=azure"},
	{name: "newline", cmdline: "ro\nignition.platform.id=azure\nquiet\n", want: true, why: "ignition.platform.id=azure"},
	{name: "other white space", cmdline: "ro\tignition.platform.id=azure\fquiet\r\n", want: true, why: "ignition.platform.id=azure"},
	{name: "empty line ahead", cmdline: "\n\nignition.platform.id=azure", want: true, why: "ignition.platform.id=azure"},
	{
		name: "inside another argument's value", cmdline: `init="/bin/x ignition.platform.id=azure y"`,
		why: "no ignition.platform.id=azure on the kernel command line, chassis asset tag absent",
	},
	{name: "quoted with a space", cmdline: `ignition.platform.id="azure stack"`, why: "ignition.platform.id=azure stack"},
	{name: "half a quote", cmdline: `ignition.platform.id=az"ure`, why: `ignition.platform.id=az"ure`},
	{name: "asset tag", cmdline: "ro", tag: tag + "\n", want: true, why: "chassis asset tag " + tag},
	{name: "asset tag, no command line", tag: tag + "\n", want: true, why: "chassis asset tag " + tag},
	{name: "asset tag in white space", cmdline: "ro", tag: " " + tag + "\t", want: true, why: "chassis asset tag " + tag},
	{name: "another platform wins over the asset tag", cmdline: "ignition.platform.id=qemu", tag: tag, why: "ignition.platform.id=qemu"},
	{name: "azure beside another", cmdline: "ignition.platform.id=qemu ignition.platform.id=azure", want: true, why: "ignition.platform.id=azure"},
	{name: "a longer word", cmdline: "xignition.platform.id=azure ignition.platform.id=azureish", why: "ignition.platform.id=azureish"},
	{name: "another asset tag", tag: "No Asset Tag", why: `no ignition.platform.id=azure on the kernel command line, chassis asset tag "No Asset Tag"`},
	{name: "more than the asset tag", tag: tag + "-1", why: `no ignition.platform.id=azure on the kernel command line, chassis asset tag "` + tag + `-1"`},
}

func TestDetect(t *testing.T) {
	for _, tt := range machines {
		t.Run(tt.name, func(t *testing.T) {
			got, why, err := azure.Detect(os.DirFS(newRoot(t, tt.cmdline, tt.tag)))
			if got != tt.want || why != tt.why || err != nil {
				t.Errorf("got %v, %q, %v; want %v, %q", got, why, err, tt.want, tt.why)
			}
		})
	}
}

// unreadable is a file system in which one file cannot be read.
type unreadable struct {
	fs.FS
	name string
	err  error
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: u.err}
	}
	return u.FS.Open(name)
}

func TestDetectUnreadable(t *testing.T) {
	tests := []struct {
		name, cmdline, file string
		err                 error
		is                  bool
		want                string
	}{
		{"command line", "", cmdlinePath, syscall.EACCES, false, "azure: platform unknown: cannot read /proc/cmdline: permission denied"},
		{"asset tag", "ro", assetTagPath, syscall.EIO, false, "azure: platform unknown: cannot read /sys/class/dmi/id/chassis_asset_tag: input/output error"},
		{"asset tag that is not needed", "ignition.platform.id=azure", assetTagPath, syscall.EACCES, true, ""},
		{"asset tag that is not needed either", "ignition.platform.id=qemu", assetTagPath, syscall.EACCES, false, ""},
		{"asset tag does not exist", "ro", assetTagPath, syscall.ENOENT, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := unreadable{fstest.MapFS{cmdlinePath: {Data: []byte(tt.cmdline)}}, tt.file, tt.err}
			is, _, err := azure.Detect(root)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if is != tt.is || text != tt.want || tt.want != "" && !errors.Is(err, tt.err) {
				t.Errorf("got %v, %v; want %v, %q", is, err, tt.is, tt.want)
			}
		})
	}
}

// The gate starts the program wherever Detect returns true or an error. Here it
// agrees with Detect in all but what is named; it may start it more often.
func TestGateAgrees(t *testing.T) {
	more := map[string]bool{ // what only the program's parser can tell
		"inside another argument's value": true, "quoted with a space": true, "a longer word": true,
		"another platform wins over the asset tag": true,
	}
	for _, shell := range shells() {
		for _, tt := range machines {
			if got := through(t, shell, newRoot(t, tt.cmdline, tt.tag)); got != (tt.want || more[tt.name]) {
				t.Errorf("%s: %s: starts the program is %v", shell, tt.name, got)
			}
		}
		for _, name := range []string{cmdlinePath, assetTagPath} {
			root := newRoot(t, "", "")
			if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil { // reading a directory fails for root too
				t.Fatal(err)
			}
			if _, _, err := azure.Detect(os.DirFS(root)); err == nil {
				t.Errorf("%s is a directory: Detect has no error", name)
			}
			if !through(t, shell, root) {
				t.Errorf("%s: %s is a directory: does not start the program", shell, name)
			}
		}
	}
}

// Whatever the command line: the gate never keeps back what Detect accepts.
func TestGateLetsThrough(t *testing.T) {
	pieces := []string{
		"ignition.platform.id=", "azure", "azurestack", "qemu", `"`, `"`, " ", "\n", "\t", "=", "x", ";", `\`, "*", "é", "\xa0",
	}
	shell := shells()[0]
	rng := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 10_000 {
		var b strings.Builder
		for range rng.IntN(9) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		root := fstest.MapFS{cmdlinePath: {Data: []byte(b.String())}}
		if is, _, err := azure.Detect(root); err != nil {
			t.Fatal(err)
		} else if !is {
			continue
		}
		accepted++
		if !through(t, shell, newRoot(t, b.String(), "")) {
			t.Errorf("%q: Detect accepts it, the gate does not", b.String())
		}
	}
	if accepted < 20 {
		t.Errorf("only %d command lines were Azure's", accepted)
	}
}

func newRoot(t *testing.T, cmdline, tag string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{cmdlinePath: cmdline, assetTagPath: tag} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// shells are those that can be /bin/sh.
func shells() []string {
	found := []string{"/bin/sh"}
	for _, name := range []string{"/bin/dash", "/bin/bash", "/bin/busybox"} {
		if _, err := os.Stat(name); err == nil {
			found = append(found, name)
		}
	}
	return found
}

// through runs the real gate below root and reports whether it starts the
// program.
func through(t *testing.T, shell, root string) bool {
	t.Helper()
	gate, err := os.ReadFile("../../packaging/rpm/90-nm-azure-dispatch")
	if err != nil {
		t.Fatal(err)
	}
	script := strings.NewReplacer("/proc/", root+"/proc/", "/sys/", root+"/sys/", "exec /usr/libexec/nm-azure-dispatch", "echo").Replace(string(gate))
	args := []string{"-c", script, "gate", "eth0", "up"}
	if strings.HasSuffix(shell, "busybox") {
		args = append([]string{"sh"}, args...)
	}
	out, err := exec.Command(shell, args...).CombinedOutput()
	if err != nil || len(out) != 0 && string(out) != "eth0 up\n" {
		t.Fatalf("%s: %v: %q", shell, err, out)
	}
	return len(out) != 0
}
