// demo shows nm-azure-dispatch doing its job on the real daemons: NetworkManager, nm-dispatcher, systemd-resolved and
// journald of a Debian release, in namespaces, opposite a DHCP server, a nameserver and a WireServer of the lab's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

const (
	limit = 2 * time.Minute // once the tree is made
	name  = "wire.lab.internal.cloudapp.net"
)

func main() {
	lab.Main()
	suite := flag.String("suite", lab.Newest, "Debian release of the guest: "+strings.Join(lab.Suites, ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx, *suite); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, suite string) (err error) {
	fmt.Printf("A machine of Debian %s on a made-up Azure. Its tree is made once, which takes about a minute.\n", suite)
	if _, err := lab.Tree(ctx, suite); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %v", limit))
	defer cancel()
	l, err := lab.New(ctx, lab.Config{
		Suite: suite, DNS: "none", ToResolved: "false", // this NetworkManager tells resolved nothing
		Daemons: map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped},
		Product: &lab.Product{Binary: "bin/nm-azure-dispatch", Gate: "packaging/rpm/90-nm-azure-dispatch"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return show(ctx, l)
}

// show plays the demo on a machine whose NetworkManager is not started yet.
func show(ctx context.Context, l *lab.Lab) error {
	if err := l.Cloud.SetName(ctx, name, lab.Constant); err != nil {
		return err
	}
	section("Before: NetworkManager is not started")
	print(ctx, l, "resolvectl", "dns")

	section("NetworkManager starts and takes its first lease")
	begin := time.Now()
	if err := l.Guest.Start(ctx, lab.NetworkManager); err != nil {
		return err
	}
	if err := after(ctx, l, "up", 1); err != nil {
		return err
	}
	if err := timeline(ctx, l, begin); err != nil {
		return err
	}

	section("After: resolved has the lease's nameservers, and resolves a name through them")
	print(ctx, l, "resolvectl", "dns", "eth0")
	print(ctx, l, "getent", "ahostsv4", name)
	print(ctx, l, lab.ProductBinary, "status")

	section("A second event: there is nothing to do, and nothing is said")
	again := time.Now()
	print(ctx, l, "nmcli", "device", "reapply", "eth0")
	if err := after(ctx, l, "reapply", 1); err != nil {
		return err
	}
	if err := timeline(ctx, l, again); err != nil {
		return err
	}

	section("Down: what was pushed is taken back")
	down := time.Now()
	print(ctx, l, "nmcli", "device", "disconnect", "eth0")
	if err := after(ctx, l, "down", 1); err != nil {
		return err
	}
	if err := timeline(ctx, l, down); err != nil {
		return err
	}
	print(ctx, l, "resolvectl", "dns", "eth0")
	return verdict(ctx, l)
}

// verdict fails the demo unless the WireServer got one goal state request and
// one Ready in all.
func verdict(ctx context.Context, l *lab.Lab) error {
	requests, err := l.Cloud.Requests(ctx)
	if err != nil {
		return err
	}
	if len(requests) != 2 || requests[0].Method != "GET" || !strings.Contains(requests[1].Body, "<State>Ready</State>") {
		return fmt.Errorf("the WireServer got %d requests, want one goal state and one Ready", len(requests))
	}
	fmt.Printf("\nIn all, the WireServer got one goal state request and one Ready.\n")
	return nil
}

// after waits until the dispatcher is done with the n-th event of eth0.
func after(ctx context.Context, l *lab.Lab, action string, n int) error {
	return l.Eventually(ctx, "eth0 "+action, func() error {
		events, err := l.Guest.Events()
		if err != nil {
			return err
		}
		seen := 0
		for _, e := range events {
			if e.Iface == "eth0" && e.Action == action {
				seen++
			}
		}
		if seen < n {
			return errors.New("the event has not come")
		}
		return nil
	})
}

func section(title string) { fmt.Printf("\n== %s\n", title) }

// print runs a command in the guest and prints it with its output.
func print(ctx context.Context, l *lab.Lab, command string, args ...string) {
	out, err := l.Guest.Run(ctx, command, args...)
	fmt.Printf("   # %s %s\n", command, strings.Join(args, " "))
	for line := range strings.Lines(out) {
		fmt.Printf("   %s\n", strings.TrimRight(line, "\n"))
	}
	if err != nil {
		fmt.Printf("   (%v)\n", err)
	}
}
