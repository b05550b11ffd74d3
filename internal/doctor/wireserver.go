package doctor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// Remedies and their commands.
const (
	firewall = "check for a rule that blocks TCP port 80 of that address, also in a network appliance on the way"
	ruleset  = "sudo nft list ruleset"
	asRoot   = "sudo nm-azure-dispatch doctor"
	busyHost = "wait some minutes, the host answers like this while it is being updated; if it continues, stop and start the VM"
	askOwner = "ask the operator of the DHCP server why option 245 is not Azure's"
	proxy    = "something else answers in the WireServer's place, mostly a proxy that must exclude this address; its answer"
	metadata = "a firewall or a proxy refuses it, or the VM was created with Metadata Security Protocol enforced, " +
		"which only lets Azure's Guest Proxy Agent through: install that, or turn the protocol off for the VM"
)

// reached reports whether the WireServer answers at either address.
func reached(s *machine.Snapshot) bool { return s.Probes.GoalState.Err == nil || reachedDefault(s) }

// reachedDefault reports whether the default address answers, and the lease names another.
func reachedDefault(s *machine.Snapshot) bool {
	return s.Target().Server != wire.DefaultAddr && s.Probes.Default.Err == nil
}

func otherAddress(step, seen string) Step {
	return warn(step+"-other-address", fmt.Sprintf("%s; but the default address %s answers, which is tried too", seen, wire.DefaultAddr), askOwner)
}

func tcp(s *machine.Snapshot) Step {
	to, err := s.Target().Server, s.Probes.TCP.Err
	seen := fmt.Sprintf("%s port 80: %v", to, err)
	switch {
	case err == nil:
		return ok(fmt.Sprintf("%s port 80 accepts connections", to))
	case reachedDefault(s):
		return otherAddress("tcp", seen)
	case errors.Is(err, os.ErrPermission):
		return fail("tcp-blocked", seen, firewall, ruleset)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail("tcp-refused", seen, "wait a minute, the host may be busy with an update; then check what rejects or redirects it", ruleset)
	case s.User != 0:
		return fail("tcp-no-answer", seen, "ask again as root, a firewall may let only root through", asRoot)
	}
	return fail("tcp-no-answer", seen, firewall, ruleset)
}

func goalState(s *machine.Snapshot) Step {
	to, g, err := s.Target().Server, s.Probes.GoalState.V, s.Probes.GoalState.Err
	if err == nil {
		return ok(fmt.Sprintf("incarnation %s, container %s", g.Incarnation, g.ContainerID))
	}
	seen := strings.TrimPrefix(err.Error(), "wire: ")
	curl := "curl -sH x-ms-version:2012-11-30 'http://" + to.String() + "/machine/?comp=goalstate'"
	status, refused := errors.AsType[*wire.StatusError](err)
	switch {
	case reachedDefault(s):
		return otherAddress("goal-state", to.String()+": "+seen)
	case refused && strings.Contains(strings.ToLower(status.Body), "<html"):
		return fail("goal-state-proxy", seen, proxy, curl)
	case refused && status.Code == 403 && s.User != 0:
		return fail("goal-state-forbidden", seen, "ask again as root", asRoot)
	case refused && status.Code == 403:
		return fail("goal-state-forbidden", seen, metadata)
	case refused:
		return fail("goal-state-busy", seen, busyHost)
	case !isNetwork(err):
		return fail("goal-state-foreign", seen, proxy, curl)
	case s.Probes.Small.Err == nil:
		return fail("goal-state-mtu", seen+"; it answers in small packets only: something on the way drops full ones",
			"lower the MTU, and find out what drops packets of 1500 bytes", "sudo ip link set "+shell(s.Probes.Route.V.Interface)+" mtu 1400")
	}
	return fail("goal-state-no-answer", seen, busyHost)
}

// isNetwork reports whether the connection failed, and not the document.
func isNetwork(err error) bool {
	_, network := errors.AsType[net.Error](err) // also an errno
	_, late := errors.AsType[machine.NoAnswer](err)
	return network || late
}
