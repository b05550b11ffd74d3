package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
)

func platform(_ context.Context, env *Env) result {
	is, why, err := azure.Detect(env.Root)
	if err != nil {
		return fail(err.Error(), "look for a denial by SELinux", "sudo ausearch -m avc -ts boot")
	}
	if !is {
		return fail("this machine is not Azure: "+why,
			"nothing is to be done elsewhere; on Azure one of these says so, the kernel command line with ignition.platform.id=azure", "cat /proc/cmdline /sys/class/dmi/id/chassis_asset_tag")
	}
	return ok(why)
}

func networkManager(ctx context.Context, env *Env) result {
	n, err := env.NetworkManager(ctx)
	switch {
	case errors.Is(err, live.ErrNotRunning):
		return fail("NetworkManager is not running", "start it", "sudo systemctl enable --now NetworkManager.service")
	case err != nil:
		return fail(why(ctx, err), "restart it; if that does not help, restart the machine", "sudo systemctl restart NetworkManager.service")
	}
	env.nm = &n
	if v := number(n.Version); v >= silentFrom && v <= silentTo {
		return warn(n.Version+" is running; versions 1.36.0 to 1.42.4 announce no renewal of a lease, so changed DNS servers of the virtual network come with the next activation only",
			"after such a change", reapply(env))
	}
	return ok(n.Version + " is running")
}

// NetworkManager's versions, as number gives them.
const (
	silentFrom  = 1_036_000 // dhcp4-change for the first lease only, commit e1648d0665
	silentTo    = 1_042_004 // until commit cab80c5129
	reapplyFrom = 1_042_000 // the event reapply
)

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

// reapply is the command that makes an event of the lease there is.
func reapply(env *Env) string {
	if env.nm != nil && number(env.nm.Version) < reapplyFrom {
		if d, ok := env.nm.Device(env.Interface); ok && d.Profile != "" {
			return "sudo nmcli connection up " + shell(d.Profile)
		}
	}
	return "sudo nmcli device reapply " + shell(env.Interface)
}

// shell quotes a word for a shell where that is needed.
func shell(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:@", c)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return fmt.Sprintf("'%s'", strings.ReplaceAll(word, "'", `'\''`))
}
