package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// dialLimit is the check-in's own.
const dialLimit = 2 * time.Second

// What to look for, and how.
const (
	firewall = "look for a rule that keeps TCP port 80 of that address from being reached, also in a network appliance on the way"
	ruleset  = "sudo nft list ruleset"
	asRoot   = "sudo nm-azure-dispatch doctor"
	busyHost = "wait some minutes, the host answers so while it is updated; if it goes on, stop and start the VM"
)

func tcp(ctx context.Context, env *Env) result {
	to := env.target()
	err := dial(ctx, env, to)
	if err == nil {
		return ok(fmt.Sprintf("%s port 80 accepts connections", to))
	}
	if to != wire.DefaultAddr && dial(ctx, env, wire.DefaultAddr) == nil {
		return warn(fmt.Sprintf("%s port 80: %v; but the constant %s answers, which is tried too", to, err, wire.DefaultAddr),
			"ask who runs the DHCP server why option 245 is not Azure's")
	}
	say, run := dialRemedy(env, err)
	return fail(fmt.Sprintf("%s port 80: %v", to, err), say, run...)
}

func dial(ctx context.Context, env *Env, to netip.Addr) error {
	ctx, cancel := context.WithTimeoutCause(ctx, dialLimit, errNoAnswer(dialLimit))
	defer cancel()
	err := env.Dial(ctx, netip.AddrPortFrom(to, 80))
	if err != nil && (ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)) {
		return errNoAnswer(dialLimit)
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e
	}
	return err
}

// dialRemedy is about the likeliest reason.
func dialRemedy(env *Env, err error) (string, []string) {
	profile := shell(env.device.Profile)
	switch {
	case errors.Is(err, os.ErrPermission):
		return firewall, []string{ruleset}
	case errors.Is(err, syscall.ECONNREFUSED):
		return "wait a minute, the host may be busy with an update; then look for what rejects or redirects it", []string{ruleset}
	case env.device.Method == "manual":
		return "the static address may not be the one that Azure gave this machine", []string{
			"sudo nmcli connection modify " + profile + " ipv4.method auto ipv4.gateway '' ipv4.addresses ''", "sudo nmcli connection up " + profile,
		}
	case leases(env) > 1:
		return "Azure answers the primary NIC only; prefer it, with its profile's name for PRIMARY", []string{
			"sudo nmcli connection modify PRIMARY ipv4.route-metric 50", "sudo nmcli connection up PRIMARY",
		}
	case env.User != 0:
		return "ask again as root, a firewall may let only root through", []string{asRoot}
	}
	return firewall, []string{ruleset}
}

func leases(env *Env) int {
	n := 0
	if env.nm != nil {
		for _, d := range env.nm.Devices {
			if d.Lease != nil {
				n++
			}
		}
	}
	return n
}

func goalState(ctx context.Context, env *Env) result {
	to := env.target()
	gs, err := env.GoalState(ctx, to)
	if err == nil {
		return ok(fmt.Sprintf("incarnation %s, container %s", gs.Incarnation, gs.ContainerID))
	}
	seen := strings.TrimPrefix(why(ctx, err), "wire: ")
	if status, ok := errors.AsType[*wire.StatusError](err); ok {
		if status.Code == 403 && env.User != 0 {
			return fail(seen, "ask again as root", asRoot)
		}
		return fail(seen, busyHost)
	}
	if ctx.Err() != nil || isNetwork(err) {
		return fail(seen, busyHost)
	}
	return fail(seen, "something else answers in the WireServer's place, mostly a proxy that must leave this address out; see what it says", "curl -sH x-ms-version:2012-11-30 'http://"+to.String()+"/machine/?comp=goalstate'")
}

// isNetwork tells a failure of the connection from one of the document.
func isNetwork(err error) bool {
	_, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	_, errno := errors.AsType[syscall.Errno](err)
	return ok || errno
}
