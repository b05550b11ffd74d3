package lab

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// AddNIC plugs a network interface into the guest and connects it to the cloud.
//
// The guest's end is raised first, without an address: then the cloud's end gets its carrier before the guest's does,
// and is ready for whatever the guest sends as soon as it sees one.
func (l *Lab) AddNIC(ctx context.Context, name string) error {
	err := l.Cloud.ip(ctx, fmt.Sprintf("link add %s type veth peer name %s address %s netns %d",
		port(name), name, MAC(name), l.Guest.PID()))
	if err != nil {
		return err
	}
	if err := l.Guest.ip(ctx, "link set "+name+" addrgenmode none", "link set "+name+" up"); err != nil {
		return err
	}
	if err := l.Cloud.ip(ctx, "link set "+port(name)+" master br0 up"); err != nil {
		return err
	}
	return l.Cloud.in(unix.CLONE_NEWNET, func() error { return hasCarrier(port(name)) })
}

// RemoveNIC takes a network interface out of the guest.
func (l *Lab) RemoveNIC(ctx context.Context, name string) error {
	return l.Cloud.ip(ctx, "link del "+port(name))
}

// SetCarrier plugs or pulls the cable of an interface of the guest.
func (l *Lab) SetCarrier(ctx context.Context, name string, on bool) error {
	state := "down"
	if on {
		state = "up"
	}
	return l.Cloud.ip(ctx, fmt.Sprintf("link set %s %s", port(name), state))
}

// port is the cloud's end of an interface.
func port(nic string) string { return "c-" + nic }
