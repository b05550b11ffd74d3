package lab

import (
	"context"
	"fmt"
	"strings"
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
	return poll(ctx, func() error {
		out, err := l.Cloud.Run(ctx, "ip", "-o", "link", "show", port(name))
		if err == nil && !strings.Contains(out, "state UP") {
			err = fmt.Errorf("lab: %s has no carrier: %s", name, out)
		}
		return err
	})
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
