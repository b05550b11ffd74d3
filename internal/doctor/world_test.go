package doctor_test

import (
	"net"
	"net/netip"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/netlink"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

var (
	constant = netip.MustParseAddr("168.63.129.16")
	second   = netip.MustParseAddr("10.77.0.1")
	own      = netip.MustParseAddr("10.77.0.50")
	other    = netip.MustParseAddr("203.0.113.1")
	stub     = netip.MustParseAddr("127.0.0.53")
)

const (
	gate  = "usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch"
	label = "system_u:object_r:NetworkManager_dispatcher_script_t:s0"
)

// azureLease is the lease of Azure's DHCP server.
func azureLease() *nm.Lease {
	l := nm.ParseLease(map[string]any{
		"ip_address": "10.77.0.50", "domain_name_servers": "168.63.129.16 10.77.0.1", "routers": "10.77.0.1",
		"domain_name": "lab.internal.cloudapp.net", "private_245": "a8:3f:81:10",
		"rfc3442_classless_static_routes": "0.0.0.0/0 10.77.0.1 168.63.129.16/32 10.77.0.1",
	})
	return &l
}

// healthy is a machine on which everything is well, until a test changes it.
func healthy() *machine.Snapshot {
	return &machine.Snapshot{
		Platform: machine.Platform{Azure: true, Why: "ignition.platform.id=azure"}, Interface: "eth0",
		Records: machine.Records{
			BootID:  "b0070001-0000-4000-8000-000000000001",
			CheckIn: machine.Seen[boot.CheckIn]{V: boot.CheckIn{State: boot.Ready, WireServer: "168.63.129.16", Attempts: 1, AfterBootMS: 2104}},
			Links:   map[string]machine.Seen[boot.Link]{},
		},
		NM: machine.Seen[nm.Snapshot]{V: nm.Snapshot{
			Version: "1.52.1", DNSMode: "systemd-resolved", RcManager: "unmanaged",
			Devices: []nm.Device{{
				Interface: "eth0", Managed: true, State: 100, Profile: nm.Profile{Name: "Wired connection 1", Method: "auto"},
				Lease: azureLease(),
			}},
			Configuration: wants("168.63.129.16", "10.77.0.1"),
		}},
		Networkd: machine.Seen[[]networkd.Link]{Err: networkd.ErrNotRunning},
		Resolved: machine.Seen[resolv.Snapshot]{V: resolv.Snapshot{ResolvConf: "stub", Stub: "yes", Links: map[int]resolv.Link{2: has(constant, second)}}},
		Units: machine.Seen[map[string]machine.Unit]{V: map[string]machine.Unit{
			machine.UnitNetworkManager: {File: "enabled", Active: "active"}, machine.UnitDispatcher: {File: "enabled", Active: "inactive"},
			machine.UnitTimer: {File: "static", Active: "active"}, machine.UnitCheckIn: {File: "static", Active: "inactive"},
			machine.UnitResolved: {File: "enabled", Active: "active"},
		}},
		Hook:   machine.Hook{Name: machine.VendorHook, File: gate, Mode: 0o755, Calls: true, Program: true},
		Conf:   machine.Conf{ResolvConf: machine.ResolvConf{File: machine.StubFile, Servers: []netip.Addr{stub}}, Hosts: []string{"dns"}},
		Kernel: machine.Kernel{Links: []machine.Link{{Name: "eth0", Index: 2, Ethernet: true}}, DefaultRoutes: []string{"eth0"}, Own: []netip.Addr{own}},
		Probes: machine.Probes{
			Route:     machine.Seen[machine.Route]{V: machine.Route{Interface: "eth0", Route: netlink.Route{Gateway: second, Source: own, Table: 254}}},
			GoalState: machine.Seen[wire.GoalState]{V: wire.GoalState{Incarnation: "1", ContainerID: "c0ffee", InstanceID: "i"}},
			Servers:   machine.Seen[[]machine.Reply]{V: []machine.Reply{reply(constant, 1234567), reply(second, time.Millisecond)}},
			File:      machine.Seen[[]machine.Reply]{V: []machine.Reply{reply(stub, time.Millisecond)}},
			Name:      "lab.internal.cloudapp.net",
			LookUp:    machine.Seen[resolv.Found]{V: resolv.Found{Addrs: []netip.Addr{own}}},
		},
	}
}

func reply(server netip.Addr, rtt time.Duration) machine.Reply {
	return machine.Reply{Answer: resolv.Answer{Server: server, RTT: rtt}}
}

// wants is NetworkManager's DNS configuration of eth0.
func wants(servers ...string) []map[string]any {
	return []map[string]any{{"interface": "eth0", "nameservers": servers}}
}

// has is what systemd-resolved has for a link.
func has(servers ...netip.Addr) resolv.Link {
	var l resolv.Link
	for _, s := range servers {
		l.Nameservers = append(l.Nameservers, resolv.Server{Addr: s})
	}
	return l
}

// device is NetworkManager's device of eth0.
func device(s *machine.Snapshot) *nm.Device { return &s.NM.V.Devices[0] }

// creating is a machine that has not checked in: the unit is retrying.
func creating(s *machine.Snapshot) {
	s.Records.CheckIn.V = boot.CheckIn{State: boot.Trying, Attempts: 3, LastError: "wire: GET http://168.63.129.16/machine/?comp=goalstate: dial tcp 168.63.129.16:80: i/o timeout"}
	s.Units.V[machine.UnitCheckIn] = machine.Unit{File: "static", Active: "activating", Sub: "start"}
}

// unreached is one that gets no answer from the WireServer either.
func unreached(err error) func(*machine.Snapshot) {
	return func(s *machine.Snapshot) {
		creating(s)
		s.Probes.GoalState.Err, s.Probes.Small.Err, s.Probes.Default.Err = dialError(err), err, err
	}
}

// dialError is the error of a connection that was not made.
func dialError(err error) error { return &net.OpError{Op: "dial", Net: "tcp4", Err: err} }

// silent is one whose nameservers do not answer.
func silent(s *machine.Snapshot) {
	late := machine.NoAnswer(2 * time.Second)
	for _, list := range [][]machine.Reply{s.Probes.Servers.V, s.Probes.File.V} {
		for i := range list {
			list[i].Err = late
		}
	}
	s.Probes.LookUp.Err = late
}

// noResolved is one where NetworkManager writes resolv.conf, as on RHCOS.
func noResolved(s *machine.Snapshot, servers ...netip.Addr) {
	s.Resolved = machine.Seen[resolv.Snapshot]{Err: resolv.ErrNotRunning}
	delete(s.Units.V, machine.UnitResolved)
	s.Conf.ResolvConf = machine.ResolvConf{File: "etc/resolv.conf", Servers: servers}
	s.Probes.File.V = nil
	for _, a := range servers {
		s.Probes.File.V = append(s.Probes.File.V, reply(a, time.Millisecond))
	}
	s.NM.V.DNSMode, s.NM.V.RcManager = "default", "symlink"
}

// byNetworkd is one without NetworkManager.
func byNetworkd(s *machine.Snapshot) {
	s.NM = machine.Seen[nm.Snapshot]{Err: nm.ErrNotRunning}
	s.Networkd = machine.Seen[[]networkd.Link]{V: []networkd.Link{{
		Name: "eth0", Index: 2, OperState: "routable", AdminState: "configured", Managed: true, DHCP: true, Lease: azureLease(), Nameservers: []netip.Addr{constant, second},
	}}}
	s.Hook = machine.Hook{Name: machine.VendorHook, File: machine.VendorHook}
	s.Units.V = map[string]machine.Unit{
		machine.UnitNetworkd: {File: "enabled", Active: "active"}, machine.UnitTimer: {File: "static", Active: "active"},
		machine.UnitCheckIn: {File: "static", Active: "inactive"}, machine.UnitResolved: {File: "enabled", Active: "active"},
	}
}

func judge(changes ...func(*machine.Snapshot)) doctor.Report {
	s := healthy()
	for _, change := range changes {
		change(s)
	}
	return doctor.Judge(s)
}
