package doctor

import (
	"errors"
	"strconv"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

func platform(s *machine.Snapshot) Step {
	const sources = "cat /proc/cmdline /sys/class/dmi/id/chassis_asset_tag"
	switch {
	case s.Platform.Err != nil:
		return fail("platform-unknown", "cannot tell whether this machine is Azure: "+s.Platform.Err.Error(),
			"make the file readable: look for what denies it, such as SELinux", sources)
	case !s.Platform.Azure:
		return fail("not-azure", "this machine is not Azure: "+s.Platform.Why,
			"no action is required on other platforms; an Azure VM is identified by ignition.platform.id=azure on the kernel command line or by its chassis asset tag", sources)
	}
	return ok(s.Platform.Why)
}

// NetworkManager's versions, as number gives them.
const (
	silentFrom  = 1_036_000 // dhcp4-change for the first lease only, commit e1648d0665
	silentTo    = 1_042_004 // until commit cab80c5129
	reapplyFrom = 1_042_000 // the event reapply
)

func networkManager(s *machine.Snapshot) Step {
	version := s.NM.V.Version
	switch {
	case errors.Is(s.NM.Err, nm.ErrNotRunning):
		return fail("networkmanager-stopped", "NetworkManager is not running", "start it", "sudo systemctl enable --now "+machine.UnitNetworkManager)
	case s.NM.Err != nil:
		return fail("networkmanager-no-answer", s.NM.Err.Error(), "restart it; if that does not help, restart the machine", "sudo systemctl restart "+machine.UnitNetworkManager)
	case number(version) >= silentFrom && number(version) <= silentTo:
		return warn("networkmanager-silent-renewals", version+" is running; versions 1.36.0 to 1.42.4 send no event when a lease is renewed, so changed DNS servers of the virtual network take effect on the next activation only",
			"after such a change", again(s))
	}
	return ok(version + " is running")
}

// number makes a version comparable: 1.42.4 is 1042004, and 0 is none.
func number(version string) int {
	var v [3]int
	for i, s := range strings.SplitN(version, ".", 3) {
		end := strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' })
		if end < 0 {
			end = len(s)
		}
		n, err := strconv.Atoi(s[:end])
		if err != nil {
			return 0
		}
		v[i] = n
	}
	return v[0]*1_000_000 + v[1]*1000 + v[2]
}
