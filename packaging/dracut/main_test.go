// Package dracut_test boots initrds that dracut made with the module in them, and has them fail: Debian 13's dracut, systemd
// and Ignition, in QEMU. What counts is what the WireServer receives. "make initrd-test" runs it.
package dracut_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

var (
	program = flag.String("program", "", "the program to test; none: skip the tests")
	quick   = flag.Bool("quick", false, "only the three quickest cases")
)

func TestMain(m *testing.M) {
	lab.Main()
	os.Exit(m.Run())
}

// stack is what brings the network up in an initrd.
type stack struct {
	name, modules string
	cmdline       string // the kernel arguments that it needs
	initrd        func(*testing.T) string
}

// stacks are made once in a run.
var stacks = func() []*stack {
	all := []*stack{
		{name: "NetworkManager", modules: "network-manager", cmdline: "rd.neednet=1 ip=dhcp"},
		{name: "networkd", modules: "systemd-networkd"},
	}
	for _, s := range all {
		var once sync.Once
		var file string
		s.initrd = func(t *testing.T) string {
			once.Do(func() { file = s.build(t) })
			if file == "" {
				t.Fatal("there is no initrd")
			}
			return file
		}
	}
	return all
}()

const moduleDir = "90nm-azure-dispatch"

// config is a machine with dracut, Ignition, the program and its dracut module.
func config(t *testing.T, c lab.Config) lab.VMConfig {
	t.Helper()
	c.Suite = "trixie"
	c.Product = &lab.Product{
		Binary: *program, Gate: "../rpm/90-nm-azure-dispatch",
		Units: []string{"../systemd/nm-azure-checkin.service", "../systemd/nm-azure-checkin.timer"},
	}
	copies := map[string]string{}
	files, err := filepath.Glob(moduleDir + "/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		copies[f] = "/usr/lib/dracut/modules.d/" + f
	}
	return lab.VMConfig{
		Config: c, Packages: []string{"dracut", "dracut-network", "ignition", "linux-image-cloud-amd64", "zstd"}, Copies: copies,
		Setup:  "chmod 755 /usr/lib/dracut/modules.d/" + moduleDir + "/{module-setup.sh,nm-azure-report-generator}",
		Kernel: lab.VMRoot + "/vmlinuz",
	}
}

// build has dracut make the initrd, as the documentation says, less what no case needs.
func (s *stack) build(t *testing.T) string {
	v, err := lab.NewVM(t.Context(), config(t, lab.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := v.Cloud.Run(t.Context(), "sh", "-ec", "mount -t proc proc $0/proc; mount --bind /dev $0/dev", lab.VMRoot); err != nil {
		t.Fatal(err)
	}
	out, err := v.Chroot(t.Context(), `dracut --no-hostonly --force --no-early-microcode --compress 'zstd -1' --add "ignition `+s.modules+`" \
		--omit "bluetooth plymouth lvm mdraid multipath iscsi nfs nvmf cifs nbd crypt dmraid btrfs pcsc" \
		--kver "$(ls /usr/lib/modules)" /boot/made.img 2>&1`)
	if err != nil {
		t.Fatal(err, out)
	}
	image, err := v.ReadFile("/boot/made.img")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "initrd-test") // for all tests of the run
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, s.name)
	if err := os.WriteFile(file, []byte(image), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// machine is a virtual machine that boots by such an initrd.
type machine struct {
	*lab.VM
	t *testing.T
}

// start boots by the stack's initrd with more files in it. A file whose content begins with "->" is a symbolic link.
func (s *stack) start(t *testing.T, c lab.Config, files map[string]string) machine {
	t.Helper()
	t.Parallel()
	if *program == "" {
		t.Skip("needs the program: make initrd-test")
	}
	image, err := os.ReadFile(s.initrd(t))
	if err != nil {
		t.Fatal(err)
	}
	vm := config(t, c)
	vm.Cmdline += " " + s.cmdline + " systemd.log_color=0"
	const name = "/boot/initrd-test.img"
	vm.Initrd = lab.VMRoot + name
	v, err := lab.NewVM(t.Context(), vm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(v.Console())
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(v.WriteFile(name, string(archive(t, files))+string(image), 0o600), v.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	return machine{v, t}
}

// archive puts files into an archive that the kernel reads ahead of dracut's.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if target, ok := strings.CutPrefix(text, "->"); ok && err == nil {
			err = os.Symlink(target, name)
		} else if err == nil {
			err = os.WriteFile(name, []byte(text), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", "find . -mindepth 1 | cpio --quiet -o -H newc -R 0:0")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal("cpio: ", err)
	}
	return out
}

// limit is for an emulated machine on a busy host.
const limit = 10 * time.Minute

// posts waits until the WireServer has accepted so many reports, and returns their bodies.
func (m machine) posts(n int) []string {
	m.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(200 * time.Millisecond) {
		requests := m.Cloud.Requests()
		var bodies []string
		for _, r := range requests {
			if r.Method == "POST" && r.Status/100 == 2 {
				bodies = append(bodies, r.Body)
			}
		}
		if len(bodies) >= n {
			return bodies
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("%d reports, want %d", len(bodies), n)
		}
	}
}

// failure waits for the report of a failure and returns the text that Azure shows.
func (m machine) failure() string {
	m.t.Helper()
	text := description(m.t, m.posts(1)[0])
	m.t.Logf("the error that the WireServer received: %s", text)
	return text
}

// description is the text of a report that something failed, in XML or, after a few failed attempts, in JSON.
func description(t *testing.T, body string) string {
	t.Helper()
	var x struct {
		SubStatus   string `xml:"Container>RoleInstanceList>Role>Health>Details>SubStatus"`
		Description string `xml:"Container>RoleInstanceList>Role>Health>Details>Description"`
	}
	var j struct {
		Details struct{ SubStatus, Description string }
	}
	if xml.Unmarshal([]byte(body), &x) != nil && json.Unmarshal([]byte(body), &j) == nil {
		x.SubStatus, x.Description = j.Details.SubStatus, j.Details.Description
	}
	if x.SubStatus != "ProvisioningFailed" {
		t.Fatal("not a report of a failure: ", body)
	}
	return x.Description
}

// waitConsole waits for a text on the console.
func (m machine) waitConsole(text string) {
	m.t.Helper()
	for deadline := time.Now().Add(limit); !strings.Contains(m.Console(), text); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("no %q on the console", text)
		}
	}
}
