package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// anyName is asked for where neither the operator nor the lease names one. Any
// answer will do, also that there is no such name.
const anyName = "azure.microsoft.com"

// azureDNS is what Azure's leases name unless the virtual network has servers of
// its own.
const azureDNS = "168.63.129.16"

// maxServers bounds how many nameservers are asked.
const maxServers = 16

// name returns the name to ask for: the operator's, or the lease's domain, or
// one that nearly everybody can ask for.
func (e *Env) name() string {
	if e.Name != "" {
		return e.Name
	}
	if e.device.Lease != nil {
		for _, d := range e.device.Lease.Domains {
			if strings.Contains(d, ".") { // others resolved does not ask nameservers for
				return d
			}
		}
	}
	return anyName
}

// nameservers asks each one directly.
func nameservers(ctx context.Context, env *Env) result {
	servers := inUse(env)
	if len(servers) == 0 {
		return skip("there are none to ask")
	}
	name := env.name()
	answers, errs := make([]resolv.Answer, len(servers)), make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { answers[i], errs[i] = env.Ask(ctx, s, name) })
	}
	wg.Wait()

	var said []string
	good, silent := 0, 0
	for i, s := range servers {
		text, fine := describe(s, answers[i], errs[i])
		said = append(said, text)
		switch {
		case fine:
			good++
		case errs[i] != nil:
			silent++
		}
	}
	seen := strings.Join(said, "; ")
	switch {
	case good == len(servers):
		return ok(seen)
	case good > 0:
		return warn(seen, "see to those that do not answer well, or take them out of the virtual network's DNS servers")
	case silent > 0:
		return fail(seen, "see that they run, where they are your own, and that nothing keeps UDP and TCP port 53 from being reached", ruleset)
	}
	return fail(seen, "have them answer this machine (recursion allowed, forwarders in reach), or set others in the virtual network")
}

// inUse returns the nameservers that programs' questions end up with; if there
// are none, those that should be.
func inUse(env *Env) []netip.Addr {
	servers := readResolvConf(env.Root).servers
	if env.resolved != nil {
		servers = addrs(env.resolved.State)
	}
	servers = slices.DeleteFunc(servers, isStub)
	if len(servers) == 0 && env.nm != nil {
		servers = env.nm.DNSConfig(env.Interface).Nameservers
	}
	if len(servers) == 0 && env.device.Lease != nil {
		servers = env.device.Lease.Nameservers
	}
	return servers[:min(len(servers), maxServers)]
}

// describe says what a nameserver answered, and whether that will do.
func describe(s netip.Addr, a resolv.Answer, err error) (string, bool) {
	if err != nil {
		return fmt.Sprintf("%s: no answer", s), false
	}
	text := fmt.Sprintf("%s: %s in %s", s, rcode(a.Rcode), a.RTT.Round(100*time.Microsecond))
	if a.Truncated {
		text += ", cut over UDP, whole over TCP"
	}
	if !a.EDNS {
		text += ", no EDNS"
	}
	return text, a.Rcode == dns.RcodeSuccess || a.Rcode == dns.RcodeNameError
}

func rcode(code int) string {
	if s, ok := dns.RcodeToString[code]; ok {
		return s
	}
	return fmt.Sprintf("rcode %d", code)
}

// lookup resolves one name as most programs do.
func lookup(ctx context.Context, env *Env) result {
	name := env.name()
	a, err := env.LookUp(ctx, name)
	if err != nil {
		return fail(fmt.Sprintf("%s: %s", name, why(ctx, err)), "see to the nameservers before this, then ask again", "resolvectl query "+shell(name))
	}
	return found(env, name, a)
}

func found(env *Env, name string, a live.Answer) result {
	switch {
	case a.Error == "":
		return ok(fmt.Sprintf("%s: %s", name, join(a.Addrs)))
	case env.Name != "":
		return warn(fmt.Sprintf("%s: a nameserver answers that it has no address (%s)", name, a.Error), "see if the right nameservers are asked", "resolvectl query "+shell(name))
	}
	return ok(fmt.Sprintf("%s: a nameserver answers, that it has no address", name))
}
