package lab

import (
	"context"
	"fmt"
)

// AddNIC plugs a network interface into the guest and connects it to the cloud.
func (l *Lab) AddNIC(ctx context.Context, name string) error {
	// The cloud's end comes up first, so that the guest's has a carrier as soon as somebody raises it.
	return l.Cloud.ip(ctx,
		fmt.Sprintf("link add %s type veth peer name %s address %s netns %d", port(name), name, MAC(name), l.Guest.PID()),
		fmt.Sprintf("link set %s master br0 up", port(name)),
	)
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
