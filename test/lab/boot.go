package lab

import (
	"context"
	"fmt"
	"io"
)

// boot starts the daemons, but those that the configuration leaves out.
func (g *Guest) boot(ctx context.Context, c Config) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for d, state := range c.Daemons {
		if err := g.setState(ctx, d, state); err != nil {
			return err
		}
	}
	if c.Systemd {
		return g.bootSystemd(ctx)
	}
	// The bus would run its /bin/false for each request to start a unit, and on a busy machine answer late.
	if err := g.removeActivation("org.freedesktop.systemd1"); err != nil {
		return err
	}
	if err := g.Symlink("/run/systemd/journal/dev-log", "/dev/log"); err != nil {
		return err
	}
	for _, d := range []Daemon{Journald, DBus, Resolved, NetworkManager} {
		if c.Daemons[d] != Running {
			continue
		}
		if err := g.Start(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// removeActivation removes the file by which the bus starts a service.
func (g *Guest) removeActivation(name string) error {
	return g.root.Remove("usr/share/dbus-1/system-services/" + name + ".service")
}

// setState arranges the files of a daemon for how it is to be found.
func (g *Guest) setState(ctx context.Context, d Daemon, state State) error {
	if name := busNames[d]; state == Absent && name != "" {
		if err := g.removeActivation(name); err != nil {
			return err
		}
	}
	var command []string
	switch {
	case state == Running || !g.systemd:
		return nil
	case state == Stopped:
		command = []string{"find", "/etc/systemd/system", "-path", "*.wants/" + string(d) + ".service", "-delete"}
	case state == Masked:
		command = []string{"systemctl", "--root=/", "mask", string(d)}
	default:
		command = []string{"systemctl", "--root=/", "disable", string(d)}
	}
	_, err := g.Run(ctx, command[0], command[1:]...)
	return err
}

// hostsUnits are masked: they manage what is the host's, or takes time that no test is about.
var hostsUnits = []string{
	"systemd-udev-trigger.service", "systemd-sysctl.service", "systemd-modules-load.service", "modprobe@.service",
	"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount",
	"dev-hugepages.mount", "dev-mqueue.mount", "ldconfig.service", "systemd-update-utmp.service",
	"systemd-update-utmp-runlevel.service", "systemd-pcrextend@.service", "getty.target",
}

// bootSystemd makes systemd PID 1 and waits until it has started what there is to start.
func (g *Guest) bootSystemd(ctx context.Context) error {
	for _, unit := range hostsUnits {
		if err := g.Symlink("/dev/null", "/etc/systemd/system/"+unit); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(g.stdin, "\n"); err != nil {
		return fmt.Errorf("lab: boot systemd: %w", err)
	}
	return poll(ctx, func() error {
		state, err := g.Run(ctx, "systemctl", "is-system-running")
		if state == "running" || state == "degraded" {
			return nil
		}
		return fmt.Errorf("systemd is %s: %w", state, err)
	})
}
