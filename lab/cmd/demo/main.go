// demo shows nm-azure-dispatch on the real daemons of a Debian release, in namespaces, opposite a DHCP server,
// nameservers and a WireServer of the lab's: a machine without the program, the same machine with it, and one whose
// network is that of systemd-networkd.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// hostName is a name that only the lease's nameservers know.
const hostName = "wire.lab.internal.cloudapp.net"

// scene is a machine whose network is not started yet, and what it has to show.
type scene struct {
	title, premise string
	config         lab.Config
	network        lab.Daemon
	wait           func(context.Context, *machine) error // until all that follows from the start of the network is over
	product        bool                                  // names resolve, and the WireServer receives Ready
	goesDown       bool                                  // in the end
}

func scenes() []scene {
	product := &lab.Product{
		Binary: "bin/nm-azure-dispatch", Gate: "packaging/rpm/90-nm-azure-dispatch",
		Units: []string{"packaging/systemd/nm-azure-checkin.service"},
	}
	stopped := map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
	without := lab.Config{Suite: lab.Newest, DNS: "none", ToResolved: "false", Daemons: stopped}
	with := without
	with.Product = product
	networkd := lab.Config{
		Suite: lab.Newest, Systemd: true, Product: product,
		Daemons: map[lab.Daemon]lab.State{lab.NetworkManager: lab.Masked},
		Files:   map[string]string{"/etc/systemd/network/10-eth0.network": "[Match]\nName=eth0\n[Network]\nDHCP=ipv4\n"},
	}
	return []scene{{
		title: "1. NetworkManager, without nm-azure-dispatch", config: without, network: lab.NetworkManager, wait: up,
		premise: "The premise: an image without a cloud agent, whose NetworkManager is configured not to pass nameservers to " +
			"systemd-resolved (dns=none, systemd-resolved=false). Times are relative to the lease, the DHCP server's ACK.",
	}, {
		title: "2. The same machine, with nm-azure-dispatch", config: with, network: lab.NetworkManager, wait: up,
		premise: "NetworkManager's dispatcher starts the program.", product: true, goesDown: true,
	}, {
		title: "3. A machine with systemd-networkd", config: networkd, network: "systemd-networkd", wait: ready,
		premise: "systemd-networkd configures the nameservers itself. nm-azure-checkin.service is started with it, and waits for a " +
			"route to the WireServer.", product: true,
	}}
}

func main() {
	lab.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := demo(ctx, os.Stdout, term.Colours(os.Stdout, os.Getenv))
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo plays the scenes one after the other. It begins in the project's directory, where bin has the program.
func demo(ctx context.Context, w io.Writer, colours bool) error {
	fmt.Fprintln(w, term.Indent("Machines of Debian "+lab.Newest+" in namespaces, with its own daemons, opposite a DHCP server, nameservers "+
		"and a WireServer that stand for Azure. They start from a Debian tree, which is made once, in about a minute.", 0))
	if _, err := lab.Tree(ctx, lab.Newest); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("not finished after two minutes"))
	defer cancel()
	scenes := scenes()
	labs, errs := make([]*lab.Lab, len(scenes)), make([]error, len(scenes))
	var all sync.WaitGroup
	for i, s := range scenes {
		all.Go(func() { labs[i], errs[i] = lab.New(ctx, s.config) })
	}
	all.Wait()
	err := errors.Join(errs...)
	for i, s := range scenes {
		if err == nil {
			err = play(ctx, &machine{labs[i], w, colours}, s)
		}
	}
	return err
}

// play starts the network of a machine, shows what follows, and fails unless that is what should.
func play(ctx context.Context, m *machine, s scene) (err error) {
	defer func() { err = errors.Join(err, m.Close()) }()
	m.section(s.title)
	m.text(s.premise)
	err = m.during(ctx, func() error {
		m.Cloud.SetName(hostName, lab.Constant)
		return errors.Join(m.Guest.Start(ctx, s.network), s.wait(ctx, m))
	})
	if err != nil {
		return err
	}
	m.run(ctx, "resolvectl", "dns", "eth0")
	if got := m.run(ctx, "getent", "hosts", hostName); strings.HasPrefix(got, lab.Constant) != s.product {
		return fmt.Errorf("%s: getent printed %q, want an address: %t", s.title, got, s.product)
	}
	want, text := "", "The WireServer received nothing: Azure shows this VM as Creating, and the deployment fails in the end."
	if s.product {
		m.run(ctx, "nm-azure-dispatch", "status")
		want = "GET /machine/?comp=goalstate\nPOST /machine/?comp=health Ready\n"
		text = "In all, the WireServer received one request for the goal state and one report: Ready."
	}
	if s.goesDown {
		err = m.goDown(ctx)
	}
	if err != nil {
		return err
	}
	if got := m.received(); got != want {
		return fmt.Errorf("%s: the WireServer received %q, want %q", s.title, got, want)
	}
	fmt.Fprintln(m.w)
	m.text(text)
	return nil
}
