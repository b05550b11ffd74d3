package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
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
	metadata = "a firewall or a proxy refuses it, or the VM was created with Metadata Security Protocol enforced, which only lets Azure's Guest Proxy Agent through: install that, or turn the protocol off for the VM"
)

func tcp(s *machine.Snapshot) Step {
	to, err := s.Target().Server, s.Probes.TCP.Err
	if err == nil {
		return ok(fmt.Sprintf("%s port 80 accepts connections", to))
	}
	seen := fmt.Sprintf("%s port 80: %v", to, err)
	switch {
	case to != wire.DefaultAddr && s.Probes.Default.Err == nil:
		return warn("tcp-other-address", fmt.Sprintf("%s; but the default address %s answers, which is tried too", seen, wire.DefaultAddr), askOwner)
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
	to, err := s.Target().Server, s.Probes.GoalState.Err
	if err == nil {
		return ok(fmt.Sprintf("incarnation %s, container %s", s.Probes.GoalState.V.Incarnation, s.Probes.GoalState.V.ContainerID))
	}
	seen := strings.TrimPrefix(err.Error(), "wire: ")
	curl := "curl -sH x-ms-version:2012-11-30 'http://" + to.String() + "/machine/?comp=goalstate'"
	status, refused := errors.AsType[*wire.StatusError](err)
	switch {
	case to != wire.DefaultAddr && s.Probes.Default.Err == nil:
		return warn("goal-state-other-address", fmt.Sprintf("%s: %s; but the default address %s answers, which is tried too", to, seen, wire.DefaultAddr), askOwner)
	case refused && strings.Contains(strings.ToLower(status.Body), "<html"):
		return fail("goal-state-proxy", seen, proxy, curl)
	case refused && status.Code == 403 && s.User != 0:
		return fail("goal-state-forbidden", seen, "ask again as root", asRoot)
	case refused && status.Code == 403:
		return fail("goal-state-forbidden", seen, metadata)
	case refused:
		return fail("goal-state-busy", seen, busyHost)
	case s.Probes.Small.Err == nil && isNetwork(err):
		return fail("goal-state-mtu", seen+"; it answers in small packets only: something on the way drops full ones", "lower the MTU, and find out what drops packets of 1500 bytes", "sudo ip link set "+shell(s.Probes.Route.V.Interface)+" mtu 1400")
	case isNetwork(err):
		return fail("goal-state-no-answer", seen, busyHost)
	}
	return fail("goal-state-foreign", seen, proxy, curl)
}

// isNetwork reports whether the connection failed, and not the document.
func isNetwork(err error) bool {
	_, timeout := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	_, errno := errors.AsType[syscall.Errno](err)
	_, late := errors.AsType[machine.NoAnswer](err)
	return timeout || errno || late
}

func record(s *machine.Snapshot) Step {
	rec, err, holder := s.Records.CheckIn.V, s.Records.CheckIn.Err, s.Records.Holder
	const once = "once the steps before are ok"
	start := []string{checkIn(s)}
	if s.Units.V[machine.UnitCheckIn].Masked() {
		start = []string{"sudo systemctl unmask " + machine.UnitCheckIn, checkIn(s)}
	}
	switch {
	case s.Records.BootErr != nil:
		return warn("boot-id-unknown", "the boot ID cannot be read, so no record counts", "read it", "cat /proc/sys/kernel/random/boot_id")
	case errors.Is(err, fs.ErrNotExist) && holder != "":
		return warn("checking-in", holder+" is checking in", "wait, then run doctor again")
	case errors.Is(err, fs.ErrNotExist):
		return fail("no-check-in", "there was no check-in attempt in this boot", once, start...)
	case err != nil:
		return warn("record-unreadable", strings.TrimPrefix(err.Error(), "boot: "), "remove what is in the way, then check in", start...)
	case rec.State == boot.Ready:
		return ok(fmt.Sprintf("checked in %v after boot, with %s, after %s", time.Duration(rec.AfterBootMS)*time.Millisecond, rec.WireServer, Attempts(rec.Attempts)))
	case rec.State == boot.Failed:
		return fail("failure-reported", "ProvisioningFailed was reported, which is final for this boot", "restart the VM once the cause is fixed, or check in anyway", "sudo nm-azure-dispatch check-in --force")
	}
	seen := fmt.Sprintf("not checked in after %s; last: %s", Attempts(rec.Attempts), rec.LastError)
	switch refused := strings.Contains(rec.LastError, "/machine/?comp=health") || strings.Contains(rec.LastError, "/provisioning/health"); {
	case refused && reached(s):
		return refusal(seen, rec.LastError)
	case holder != "":
		return warn("trying", seen+"; "+holder+" is retrying", "fix what failed before this; the check-in is retried automatically")
	}
	return fail("nobody-tries", seen+"; no process is retrying", once, start...)
}

// refusal returns the step of a WireServer that answers the goal state but refuses
// the report.
func refusal(seen, last string) Step {
	code := 0
	for word := range strings.FieldsSeq(last) { // as wire.StatusError has it: "URL: 403 Forbidden: ..."
		if n, err := strconv.Atoi(word); err == nil && len(word) == len("403") && code == 0 {
			code = n
		}
	}
	seen += "; the goal state is answered, the report is not accepted"
	switch {
	case code == 403:
		return fail("report-forbidden", seen, metadata)
	case code >= 400:
		return fail("report-refused", seen, busyHost)
	}
	return fail("report-failed", seen, firewall, ruleset)
}

// Attempts returns the number of attempts as text.
func Attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return strconv.Itoa(n) + " attempts"
}
