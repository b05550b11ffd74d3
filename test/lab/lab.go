package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab/internal/inside"
)

// Lab is a cloud and a guest, connected.
type Lab struct {
	Cloud *Cloud
	Guest *Guest

	sweeper *sweeper // nil without systemd
}

// Available tells why no lab can be made here.
func Available() error {
	if os.Geteuid() != 0 {
		return errors.New("lab: namespaces and the daemons need root: run as root")
	}
	for tool, pkg := range map[string]string{"ip": "iproute2", treeTool: treeTool} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("lab: %s is missing: apt-get install %s", tool, pkg)
		}
	}
	return nil
}

// New makes a lab and starts its daemons. It does not wait for a lease.
func New(ctx context.Context, c Config) (*Lab, error) {
	c = c.withDefaults()
	tree, err := Tree(ctx, c.Suite)
	if err != nil {
		return nil, err
	}
	l := &Lab{}
	if err := l.start(ctx, c, tree); err != nil {
		if l.Guest != nil && l.Guest.root != nil {
			err = l.withDump(ctx, err)
		}
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close ends everything in the lab and returns when it is gone. It may be called again.
func (l *Lab) Close() error {
	if l.Guest != nil {
		l.Guest.stop()
		if l.Guest.root != nil {
			_ = l.Guest.root.Close()
		}
	}
	if l.Cloud != nil {
		l.Cloud.close()
	}
	if s := l.sweeper; s != nil {
		l.sweeper = nil
		return s.close()
	}
	return nil
}

func (l *Lab) start(ctx context.Context, c Config, tree string) error {
	var err error
	if l.Cloud, err = startCloud(ctx); err != nil {
		return err
	}
	if err := l.startGuest(ctx, c, tree); err != nil {
		return err
	}
	l.Cloud.SetLease("", *c.Lease)
	for nic, lease := range c.Leases {
		l.Cloud.SetLease(nic, lease)
	}
	for _, nic := range c.NICs {
		err = errors.Join(err, l.AddNIC(ctx, nic))
	}
	if err := errors.Join(err, l.Guest.installRecorder(), l.Guest.furnish(c)); err != nil {
		return err
	}
	return l.Guest.boot(ctx, c)
}

// startGuest makes the guest with its root; nothing runs in it yet.
func (l *Lab) startGuest(ctx context.Context, c Config, tree string) error {
	var cgroup *os.File
	if c.Systemd {
		var err error
		if l.sweeper, err = newSweeper(); err != nil {
			return err
		}
		cgroup = l.sweeper.dir
	}
	m, err := startMachine(&inside.GuestSpec{
		Tree: tree, Cmdline: c.Cmdline, BootID: "b0070001-0000-4000-8000-000000000001", AssetTag: c.AssetTag,
		Systemd: c.Systemd,
	}, cgroup)
	if err != nil {
		return err
	}
	l.Guest = &Guest{Machine: m, systemd: c.Systemd, daemons: make(map[Daemon]daemonProcess)}
	if err := m.ip(ctx, "link set lo up"); err != nil {
		return err
	}
	l.Guest.root, err = m.openFiles("/")
	return err
}
