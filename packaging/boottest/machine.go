package boottest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// Config says what is particular about a machine.
type Config struct {
	Suite    string // Debian's release, "bookworm" or "trixie"
	QEMU     bool
	Cmdline  string   // arguments of the kernel
	AssetTag string   // DMI chassis asset tag; empty: none
	RPMs     []string // installed before the first boot
	Files    []string // copied to the guest's /root
	// Setup is a script that runs in the guest's root before the first boot.
	Setup string
}

// Machine is a guest with its cloud.
type Machine struct {
	world  *world
	cloud  *cloud
	bootID string
}

// ourDir is where this executable is in the guest's root, under its other names.
const ourDir = "/usr/local/sbin/"

// In a container the unit's options that mount a new /proc show it another command line and boot ID than the hook sees:
// ours are mounts over files of the old one. A virtual machine's test is without this.
const (
	dropInDir = "/etc/systemd/system/nm-azure-checkin.service.d"
	dropIn    = `[Service]\nProtectProc=default\nProtectKernelTunables=no\nProtectControlGroups=no\n`
)

// bootLimit is for a virtual machine without hardware virtualization while the host is busy.
const bootLimit = 4 * time.Minute

// Prepare makes what machines are booted from, if it is not there yet: New does too, but each time anew if it fails.
func Prepare(ctx context.Context, c Config) error {
	_, err := tree(ctx, c.Suite)
	if err == nil && c.QEMU {
		_, err = kernel(ctx)
	}
	return err
}

// New boots a machine.
func New(ctx context.Context, c Config) (*Machine, error) {
	lower, err := tree(ctx, c.Suite)
	if err != nil {
		return nil, err
	}
	m := &Machine{}
	if m.world, err = newWorld(lower); err != nil {
		return nil, err
	}
	if err := m.start(ctx, c); err != nil {
		return nil, errors.Join(fmt.Errorf("%w\nconsole:\n%s", err, m.Console()), m.Close())
	}
	return m, nil
}

// Close ends the machine and its cloud.
func (m *Machine) Close() error { return m.world.close() }

func (m *Machine) start(ctx context.Context, c Config) error {
	if err := m.install(ctx, c); err != nil {
		return err
	}
	var err error
	if m.cloud, err = newCloud(ctx, m.world); err != nil {
		return err
	}
	if c.QEMU {
		err = startQEMU(ctx, m.world, c)
	} else {
		err = startContainer(ctx, m.world, c)
	}
	if err != nil {
		return err
	}
	return m.waitBooted(ctx)
}

// install makes the guest's root ready: this executable, files, packages. A package's dependencies are not looked at,
// since Debian's packages are none to rpm.
func (m *Machine) install(ctx context.Context, c Config) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	copies := map[string]string{self: ourDir + roleAgent}
	script := "cd /root; for name in " + roleInit + " " + roleWire + "; do ln " + ourDir + roleAgent + " " + ourDir + "$name; done\n"
	for _, f := range append(c.Files, c.RPMs...) {
		copies[f] = filepath.Join("/root", filepath.Base(f))
	}
	for _, f := range c.RPMs {
		script += "rpm -i --nodeps " + filepath.Base(f) + "\n"
	}
	if !c.QEMU {
		script += "mkdir -p " + dropInDir + "; printf '" + dropIn + "' >" + dropInDir + "/boottest.conf\n"
	}
	for from, to := range copies {
		if out, err := exec.CommandContext(ctx, "cp", from, m.world.path("root"+to)).CombinedOutput(); err != nil {
			return fmt.Errorf("boottest: cp: %w: %s", err, out)
		}
	}
	return m.world.run(ctx, "chroot", scratch+"/root", "bash", "-ec", script+c.Setup)
}

// Run runs a script in the guest and gives what it printed. A status other than 0 is an error.
func (m *Machine) Run(ctx context.Context, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	out, status, err := ask(ctx, m.world.path("shared/agent"), script)
	if err == nil && status != 0 {
		err = fmt.Errorf("boottest: status %d of: %s\n%s", status, script, out)
	}
	return strings.TrimSuffix(out, "\n"), err
}

// Reboot boots the guest again.
func (m *Machine) Reboot(ctx context.Context) error {
	_, _ = m.Run(ctx, "systemctl --no-block reboot") // the agent may be ended before it has answered
	return m.waitBooted(ctx)
}

// waitBooted waits for a new boot ID and the end of the boot. A container's shows the host's while it goes down.
func (m *Machine) waitBooted(ctx context.Context) error {
	host, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	err = poll(ctx, bootLimit, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		id, err := m.Run(ctx, "cat /proc/sys/kernel/random/boot_id")
		switch {
		case err != nil:
			return err
		case id == m.bootID || id == strings.TrimSpace(string(host)):
			return errors.New("not booted again")
		}
		m.bootID = id
		return nil
	})
	if err != nil {
		return fmt.Errorf("boottest: boot: %w", err)
	}
	_, err = m.Run(ctx, "systemctl is-system-running --wait >/dev/null; systemctl start network-online.target")
	return err
}

// Reports are the requests that told Azure that the machine is ready.
func (m *Machine) Reports() ([]wiretest.Request, error) { return m.cloud.reports() }

// Requests are all requests to the WireServer.
func (m *Machine) Requests() ([]wiretest.Request, error) { return m.cloud.requests() }

// WaitReports waits until Azure has been told so many times.
func (m *Machine) WaitReports(ctx context.Context, n int, limit time.Duration) error {
	return poll(ctx, limit, func(context.Context) error {
		reports, err := m.Reports()
		if err == nil && len(reports) < n {
			err = fmt.Errorf("boottest: %d reports, want %d", len(reports), n)
		}
		return err
	})
}

// SetWireServer makes the WireServer come or go.
func (m *Machine) SetWireServer(ctx context.Context, there bool) error {
	return m.cloud.setWireServer(ctx, there)
}

// Console is what was written to the guest's console.
func (m *Machine) Console() string {
	b, _ := os.ReadFile(m.world.path("console.log"))
	return string(b)
}

// startLogged starts a command whose output is the console.
func startLogged(w *world, cmd *exec.Cmd) error {
	console, err := os.OpenFile(w.path("console.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer console.Close()
	cmd.Stdout, cmd.Stderr = console, console
	return cmd.Start()
}

// poll calls f until it gives no error, or gives the last one when the time is up.
func poll(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
