package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Product are the files of nm-azure-dispatch on the host.
type Product struct {
	Binary string   // the program
	Gate   string   // the dispatcher script that calls it
	Units  []string // unit files, for a guest with systemd
}

// Where a package puts the files.
const (
	ProductBinary = "/usr/libexec/nm-azure-dispatch"
	productGate   = "90-nm-azure-dispatch"
	unitDir       = "/usr/lib/systemd/system/"
)

// install puts the product into the guest as a package would.
func (f *files) install(p Product) error {
	err := errors.Join(
		f.copyIn(p.Binary, ProductBinary, 0o755),
		f.copyIn(p.Gate, recorderPath+"/no-wait.d/"+productGate, 0o755),
		f.Symlink("no-wait.d/"+productGate, recorderPath+"/"+productGate),
	)
	for _, unit := range p.Units {
		err = errors.Join(err, f.installUnit(unit))
	}
	return err
}

// ownProc is for services that have a /proc of their own: systemd 252 leaves out what the lab has mounted there.
const ownProc = `[Service]
BindReadOnlyPaths=/lab/cmdline:/proc/cmdline
BindReadOnlyPaths=/lab/boot_id:/proc/sys/kernel/random/boot_id
`

// installUnit puts a unit in its place, and where systemd starts it: a timer's with the timers, a service with
// systemd-networkd.
func (f *files) installUnit(path string) error {
	unit := filepath.Base(path)
	if err := f.copyIn(path, unitDir+unit, 0o644); err != nil {
		return err
	}
	if filepath.Ext(unit) == ".timer" {
		return f.Symlink("../"+unit, unitDir+"timers.target.wants/"+unit)
	}
	if !f.ownKernel {
		if err := f.WriteFile("/etc/systemd/system/"+unit+".d/lab.conf", ownProc, 0o644); err != nil {
			return err
		}
	}
	return f.Symlink("../"+unit, unitDir+"systemd-networkd.service.wants/"+unit)
}

func (f *files) copyIn(from, to string, mode os.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("lab: install: %w", err)
	}
	return f.WriteFile(to, string(b), mode)
}
