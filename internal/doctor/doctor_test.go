package doctor_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/golden"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

type change = func(*machine.Snapshot)

// cases break a healthy machine in one way each; want has every step that is
// then neither ok nor skipped for an earlier one, as "STEP VERDICT CODE". The
// texts stand in testdata/texts.golden.
var cases = []struct {
	name   string
	change change
	want   string
}{
	{"all is well", func(*machine.Snapshot) {}, ""},
	{"all is well as another user", func(s *machine.Snapshot) { s.User = 1000 }, ""},
	{"platform unknown", func(s *machine.Snapshot) {
		s.Platform = machine.Platform{Err: errors.New("azure: open /proc/cmdline: permission denied")}
	}, "platform fail platform-unknown"},

	{"NetworkManager stopped", func(s *machine.Snapshot) { s.NM = machine.Seen[nm.Snapshot]{Err: nm.ErrNotRunning} }, "networkmanager fail networkmanager-stopped"},
	{"NetworkManager hangs", func(s *machine.Snapshot) { s.NM = machine.Seen[nm.Snapshot]{Err: machine.NoAnswer(2 * time.Second)} }, "networkmanager fail networkmanager-no-answer"},
	{"NetworkManager silent on renewals", func(s *machine.Snapshot) { s.NM.V.Version = "1.42.4-1.el9" }, "networkmanager warn networkmanager-silent-renewals"},
	{"dispatcher disabled", unit(machine.UnitDispatcher, machine.Unit{File: "disabled"}), "dispatcher fail dispatcher-off"},
	{"dispatcher disabled, no event reapply", func(s *machine.Snapshot) {
		s.NM.V.Version = "1.34.0"
		s.Units.V[machine.UnitDispatcher] = machine.Unit{File: "disabled"}
	}, "dispatcher fail dispatcher-off"},
	{"dispatcher masked", unit(machine.UnitDispatcher, machine.Unit{File: "masked"}), "dispatcher fail dispatcher-off"},
	{"dispatcher missing", unit(machine.UnitDispatcher, machine.Unit{}), "dispatcher fail dispatcher-missing"},

	{"hook missing", hook(func(h *machine.Hook) { h.File, h.Err = h.Name, fs.ErrNotExist }), "hook fail hook-missing"},
	{"hook dangling", hook(func(h *machine.Hook) { h.Err = fs.ErrNotExist }), "hook fail hook-unreadable"},
	{"hook not executable", hook(func(h *machine.Hook) { h.Mode = 0o644 }), "hook fail hook-mode"},
	{"hook writable by others", hook(func(h *machine.Hook) { h.Mode = 0o775 }), "hook fail hook-mode"},
	{"hook set-UID", hook(func(h *machine.Hook) { h.Mode = 0o755 | fs.ModeSetuid }), "hook fail hook-mode"},
	{"hook of a user's", hook(func(h *machine.Hook) { h.Owner = 1000 }), "hook fail hook-mode"},
	{"hook with a space in its path", hook(func(h *machine.Hook) { h.File, h.Mode = "opt/my hooks/x", 0o644 }), "hook fail hook-mode"},
	{"hook empty", hook(func(h *machine.Hook) { h.Empty = true }), "hook fail hook-masked"},
	{"hook a directory", hook(func(h *machine.Hook) { h.Err = errors.New("not a regular file") }), "hook fail hook-unreadable"},
	{"hook masked by a link", hook(func(h *machine.Hook) { h.Name, h.File, h.Mode = machine.AdminHook, "dev/null", fs.ModeCharDevice }), "hook fail hook-masked"},
	// D8: an override with "exit 0".
	{"hook replaced", hook(func(h *machine.Hook) { h.Name, h.File, h.Calls = machine.AdminHook, machine.AdminHook, false }), "hook fail hook-replaced"},
	{"hook replaced in the package's place", hook(func(h *machine.Hook) { h.Calls = false }), "hook fail hook-replaced"},
	{"hook copied to /etc", hook(func(h *machine.Hook) { h.Name, h.File = machine.AdminHook, machine.AdminHook }), "hook warn hook-waits"},
	{"hook no link", hook(func(h *machine.Hook) { h.File = h.Name }), "hook warn hook-waits"},
	{"program missing", hook(func(h *machine.Hook) { h.Program = false }), "hook fail hook-program-missing"},
	{"bare program as hook", hook(func(h *machine.Hook) {
		h.File, h.Program = "usr/lib/NetworkManager/dispatcher.d/no-wait.d/nm-azure-dispatch", false
	}), ""},
	{"SELinux, all labels right", selinux(label, label), ""},
	{"SELinux, another label", selinux(label, "unconfined_u:object_r:user_home_t:s0"), "hook fail hook-label"},
	// D16: no policy has a transition for the older type any more.
	{"SELinux, the older label", selinux(label, "system_u:object_r:NetworkManager_initrc_exec_t:s0"), "hook fail hook-label"},
	{"SELinux, label of the link", selinux("unconfined_u:object_r:user_home_t:s0", label), "hook fail hook-label"},
	{"SELinux, a link past the gate", func(s *machine.Snapshot) {
		selinux(label, "system_u:object_r:bin_t:s0")(s)
		s.Hook.Name, s.Hook.File = machine.AdminHook, machine.Program
	}, "hook fail hook-past-gate"},
	{"SELinux permissive", func(s *machine.Snapshot) {
		selinux("", "")(s)
		s.Hook.Enforce = "0"
	}, "hook warn hook-label"},

	{"timer masked", unit(machine.UnitTimer, machine.Unit{File: "masked"}), "timer warn unit-masked"},
	{"service masked", unit(machine.UnitCheckIn, machine.Unit{File: "masked-runtime"}), "timer warn unit-masked"},
	{"timer stopped", unit(machine.UnitTimer, machine.Unit{File: "static", Active: "inactive"}), "timer warn timer-stopped"},
	// Without its link in timers.target.wants, or a package installed without a reload.
	{"timer not loaded", unit(machine.UnitTimer, machine.Unit{File: "static"}), "timer warn timer-stopped"},
	{"timer missing", unit(machine.UnitTimer, machine.Unit{}), "timer warn unit-missing"},
	{"service missing", unit(machine.UnitCheckIn, machine.Unit{}), "timer warn unit-missing"},
	{"service failed", unit(machine.UnitCheckIn, machine.Unit{File: "static", Active: "failed", Sub: "failed", Result: "exit-code", Exit: 1}), "timer warn unit-failed"},
	{"service failed, to be started again", unit(machine.UnitCheckIn, machine.Unit{File: "static", Active: "activating", Sub: "auto-restart", Result: "signal", Exit: 9}), "timer warn unit-failed"},
	{"service running", unit(machine.UnitCheckIn, machine.Unit{File: "static", Active: "activating", Sub: "start"}), ""},
	// D19
	{"service cannot start", func(s *machine.Snapshot) {
		nothing(s)
		s.Units.V[machine.UnitCheckIn] = machine.Unit{File: "static", Active: "activating", Sub: "auto-restart", Result: "exit-code", Exit: 226}
	}, "timer fail unit-cannot-start; record fail no-check-in"},

	{"no interface", func(s *machine.Snapshot) { s.Interface = "" }, "device warn no-interface"},
	{"unknown interface", iface("eth7"), "device warn device-unknown"},
	{"unmanaged", func(s *machine.Snapshot) { device(s).Managed, device(s).State, device(s).Lease = false, 10, nil }, "device warn device-unmanaged"},
	// D10
	{"unmanaged by configuration", func(s *machine.Snapshot) {
		unreached(machine.NoAnswer(time.Second))(s)
		device(s).Managed, device(s).State, device(s).Lease, device(s).Profile = false, 10, nil, nm.Profile{}
		s.Conf.Unmanaged = "etc/NetworkManager/conf.d/10-mine.conf"
	}, "device fail device-unmanaged; tcp-80 fail tcp-no-answer; record warn trying"},
	{"disconnected, no profile", func(s *machine.Snapshot) {
		nothing(s)
		*device(s) = nm.Device{Interface: "eth0", Managed: true, State: 30, Reason: 39}
	}, "device fail device-disconnected; record fail no-check-in"},
	{"disconnected, unknown reason", func(s *machine.Snapshot) {
		nothing(s)
		*device(s) = nm.Device{Interface: "eth0", Managed: true, State: 30, Reason: 99}
	}, "device fail device-disconnected; record fail no-check-in"},
	{"no carrier", func(s *machine.Snapshot) { device(s).State = 20 }, "device warn device-no-carrier"},
	{"external", func(s *machine.Snapshot) { device(s).External, device(s).Lease = true, nil }, "device warn device-external; lease skipped device-external"},
	{"waiting for DHCP", func(s *machine.Snapshot) {
		nothing(s)
		device(s).State, device(s).Lease = 70, nil
	}, "lease fail no-lease; record fail no-check-in"},
	{"DHCP failed", func(s *machine.Snapshot) {
		nothing(s)
		*device(s) = nm.Device{Interface: "eth0", Managed: true, State: 30, Reason: 5}
	}, "lease fail no-lease; record fail no-check-in"},
	{"static profile", func(s *machine.Snapshot) { device(s).Profile.Method, device(s).Lease = "manual", nil }, "lease warn dhcp-off; option-245 skipped no-lease"},
	// D11: the cause, not the consequence.
	{"static profile, wrong address", func(s *machine.Snapshot) {
		unreached(syscall.EHOSTUNREACH)(s)
		device(s).Profile.Method, device(s).Lease = "manual", nil
	}, "lease fail dhcp-off; tcp-80 fail tcp-no-answer; record warn trying"},
	{"ipv4.method=disabled", func(s *machine.Snapshot) {
		unreached(syscall.ENETUNREACH)(s)
		device(s).Profile.Method, device(s).Lease = "disabled", nil
		s.Probes.Route.Err = syscall.ENETUNREACH
	}, "lease fail dhcp-off; route fail route-missing; record warn trying"},
	{"lease without nameservers", func(s *machine.Snapshot) { device(s).Lease.Nameservers = nil }, "lease warn lease-no-nameservers"},
	{"lease of a secondary NIC", func(s *machine.Snapshot) { device(s).Lease.Routers, device(s).Lease.Routes = nil, nil }, "lease warn lease-secondary"},
	{"no option 245", func(s *machine.Snapshot) { device(s).Lease.WireServer = netip.Addr{} }, "option-245 warn option-245-unusable"},
	{"option 245 is loopback", func(s *machine.Snapshot) { device(s).Lease.WireServer = netip.MustParseAddr("127.0.0.1") }, "option-245 warn option-245-unusable"},
	{"option 245 is another", func(s *machine.Snapshot) { device(s).Lease.WireServer = second }, "option-245 warn option-245-other"},
	// D9
	{"option 245 does not answer, the default address does", func(s *machine.Snapshot) {
		unreached(syscall.ECONNREFUSED)(s)
		device(s).Lease.WireServer = other
		s.Probes.Default.Err = nil
	}, "option-245 warn option-245-other; tcp-80 warn tcp-other-address; goal-state warn goal-state-other-address; record warn trying"},
	{"option 245 hangs on a goal state, the default address answers", func(s *machine.Snapshot) {
		device(s).Lease.WireServer = other
		s.Probes.GoalState.Err = machine.NoAnswer(time.Second)
	}, "option-245 warn option-245-other; goal-state warn goal-state-other-address"},

	{"no route", noRoute(syscall.ENETUNREACH), "route fail route-missing; record warn trying"},
	{"prohibited by a rule", noRoute(syscall.EACCES), "route fail route-rejects; record warn trying"},
	{"blackhole", noRoute(syscall.EINVAL), "route fail route-rejects; record warn trying"},
	// What the kernel was not heard to say is no missing route.
	{"route not known, the WireServer answers", func(s *machine.Snapshot) { s.Probes.Route = machine.Seen[machine.Route]{Err: syscall.EPERM} }, ""},
	{"route not known", noRoute(machine.NoAnswer(time.Second)), "route warn route-unknown; tcp-80 fail tcp-no-answer; record warn trying"},
	{"never-default", func(s *machine.Snapshot) {
		noRoute(syscall.ENETUNREACH)(s)
		device(s).Profile.NeverDefault = true
	}, "route fail route-profile; record warn trying"},
	{"routes in another table", func(s *machine.Snapshot) {
		noRoute(syscall.ENETUNREACH)(s)
		device(s).Profile.RouteTable = 100
	}, "route fail route-profile; record warn trying"},
	{"by a rule to another table", func(s *machine.Snapshot) {
		unreached(machine.NoAnswer(time.Second))(s)
		s.Probes.Route.V.Table = 100
	}, "route fail route-rule; record warn trying"},
	{"by a dead gateway", func(s *machine.Snapshot) {
		unreached(machine.NoAnswer(time.Second))(s)
		s.Probes.Route.V.Gateway = other
	}, "route fail route-gateway; record warn trying"},
	{"frozen ARP entry", func(s *machine.Snapshot) {
		unreached(machine.NoAnswer(time.Second))(s)
		s.Kernel.Neighbours = []machine.Neighbour{{Addr: second, Interface: "eth0", Permanent: true, Complete: true}}
	}, "route fail route-neighbour; record warn trying"},
	{"silent gateway", func(s *machine.Snapshot) {
		unreached(machine.NoAnswer(time.Second))(s)
		s.Kernel.Neighbours = []machine.Neighbour{{Addr: second, Interface: "eth0"}}
	}, "route fail route-neighbour-silent; record warn trying"},
	// D7
	{"twin VF with a lease of its own", func(s *machine.Snapshot) {
		vf := *device(s)
		vf.Interface, vf.Lease = "enP1", azureLease()
		s.NM.V.Devices = append(s.NM.V.Devices, vf)
		s.Probes.Route.V.Interface = "enP1"
	}, ""},
	{"second NIC with the lower metric, Ready", func(s *machine.Snapshot) {
		secondNIC(s)
		s.Probes.Route.V.Interface = "eth1"
	}, ""},
	{"second NIC with the lower metric", func(s *machine.Snapshot) {
		secondNIC(s)
		unreached(machine.NoAnswer(time.Second))(s)
		s.Probes.Route.V.Interface, s.Kernel.DefaultRoutes = "eth1", []string{"eth1", "eth0"}
	}, "route fail route-wrong-nic; record warn trying"},
	// Not every route that is preferred is a default route of a lower metric.
	{"second NIC with a route of its own", func(s *machine.Snapshot) {
		secondNIC(s)
		unreached(machine.NoAnswer(time.Second))(s)
		s.Probes.Route.V.Interface, s.Kernel.DefaultRoutes = "eth1", []string{"eth0", "eth1"}
	}, "route fail route-wrong-nic; record warn trying"},
	{"second NIC, the first has no default route", func(s *machine.Snapshot) {
		secondNIC(s)
		unreached(machine.NoAnswer(time.Second))(s)
		s.Probes.Route.V.Interface, s.Kernel.DefaultRoutes = "eth1", []string{"eth1"}
	}, "route fail route-wrong-nic; record warn trying"},
	// D10: no command without its object.
	{"second NIC without a profile", func(s *machine.Snapshot) {
		secondNIC(s)
		unreached(machine.NoAnswer(time.Second))(s)
		s.Probes.Route.V.Interface, s.NM.V.Devices[1].Profile = "eth1", nm.Profile{}
		s.Kernel.DefaultRoutes = []string{"eth1", "eth0"}
	}, "route fail route-wrong-nic; record warn trying"},
	{"second NIC, the first ignores its routes", func(s *machine.Snapshot) {
		secondNIC(s)
		unreached(machine.NoAnswer(time.Second))(s)
		s.Probes.Route.V.Interface = "eth1"
		device(s).Profile.IgnoreAutoRoutes = true
	}, "route fail route-wrong-nic; record warn trying"},
	{"secondary address", func(s *machine.Snapshot) {
		unreached(machine.NoAnswer(time.Second))(s)
		s.Probes.Route.V.Source = other
	}, "route warn route-source; tcp-80 fail tcp-no-answer; record warn trying"},
	{"no answer", unreached(machine.NoAnswer(2 * time.Second)), "tcp-80 fail tcp-no-answer; record warn trying"},
	{"no answer, Ready", func(s *machine.Snapshot) { s.Probes.GoalState.Err = dialError(os.ErrDeadlineExceeded) }, "tcp-80 warn tcp-no-answer"},
	{"no answer for a user", func(s *machine.Snapshot) {
		unreached(machine.NoAnswer(2 * time.Second))(s)
		s.User = 1000
	}, "tcp-80 fail tcp-no-answer; record warn trying"},
	{"refused", unreached(syscall.ECONNREFUSED), "tcp-80 fail tcp-refused; record warn trying"},
	{"not permitted", unreached(syscall.EPERM), "tcp-80 fail tcp-blocked; record warn trying"},

	{"goal state forbidden for a user", func(s *machine.Snapshot) {
		goalState(&wire.StatusError{Code: 403, URL: goalStateURL})(s)
		s.User = 1000
	}, "goal-state fail goal-state-forbidden; record warn trying"},
	{"goal state forbidden", goalState(&wire.StatusError{Code: 403, URL: goalStateURL}), "goal-state fail goal-state-forbidden; record warn trying"},
	{"goal state forbidden by a proxy", goalState(&wire.StatusError{Code: 403, URL: goalStateURL, Body: "<html><body>Denied"}), "goal-state fail goal-state-proxy; record warn trying"},
	{"goal state 410", goalState(&wire.StatusError{Code: 410, URL: goalStateURL, Body: "Gone"}), "goal-state fail goal-state-busy; record warn trying"},
	{"goal state hangs", func(s *machine.Snapshot) {
		goalState(machine.NoAnswer(2 * time.Second))(s)
		s.Probes.Small.Err = machine.NoAnswer(2 * time.Second)
	}, "goal-state fail goal-state-no-answer; record warn trying"},
	{"connection reset", func(s *machine.Snapshot) {
		goalState(syscall.ECONNRESET)(s)
		s.Probes.Small.Err = machine.ErrNotAsked
	}, "goal-state fail goal-state-no-answer; record warn trying"},
	{"MTU blackhole", goalState(machine.NoAnswer(2 * time.Second)), "goal-state fail goal-state-mtu; record warn trying"},
	{"goal state of a proxy", goalState(errors.New(`wire: goal state: root element is "html", want "GoalState"`)), "goal-state fail goal-state-foreign; record warn trying"},

	{"no boot ID", func(s *machine.Snapshot) {
		s.Records.BootErr, s.Records.CheckIn.Err = fs.ErrPermission, fs.ErrNotExist
	}, "record warn boot-id-unknown"},
	{"no record", nothing, "record fail no-check-in"},
	{"no record, systemd does not answer", func(s *machine.Snapshot) {
		nothing(s)
		s.Units = machine.Seen[map[string]machine.Unit]{Err: machine.NoAnswer(2 * time.Second)}
	}, "dispatcher skipped systemd-no-answer; timer skipped systemd-no-answer; record fail no-check-in; agents skipped systemd-no-answer"},
	{"no record, service masked", func(s *machine.Snapshot) {
		nothing(s)
		unit(machine.UnitCheckIn, machine.Unit{File: "masked"})(s)
	}, "timer warn unit-masked; record fail no-check-in"},
	{"no record yet", func(s *machine.Snapshot) {
		nothing(s)
		unit(machine.UnitCheckIn, machine.Unit{File: "static", Active: "activating", Sub: "start"})(s)
	}, "record warn checking-in"},
	{"record unreadable", func(s *machine.Snapshot) {
		s.Records.CheckIn = machine.Seen[boot.CheckIn]{Err: errors.New("boot: /run/nm-azure-dispatch/check-in.json is a directory, want a regular file: remove it")}
	}, "record warn record-unreadable"},
	{"nobody tries", func(s *machine.Snapshot) {
		creating(s)
		unit(machine.UnitCheckIn, machine.Unit{File: "static", Active: "inactive"})(s)
	}, "record fail nobody-tries"},
	{"nobody may try, systemd does not answer", func(s *machine.Snapshot) {
		creating(s)
		s.Units = machine.Seen[map[string]machine.Unit]{Err: machine.NoAnswer(2 * time.Second)}
	}, "dispatcher skipped systemd-no-answer; timer skipped systemd-no-answer; record fail nobody-tries; agents skipped systemd-no-answer"},
	{"systemd will restart the unit", func(s *machine.Snapshot) {
		creating(s)
		unit(machine.UnitCheckIn, machine.Unit{File: "static", Active: "activating", Sub: "auto-restart", Result: "exit-code", Exit: 1})(s)
	}, "timer warn unit-failed; record fail nobody-tries"},
	{"retrying", creating, "record warn trying"},
	{"failure reported", func(s *machine.Snapshot) { s.Records.CheckIn.V.State = boot.Failed }, "record fail failure-reported"},
	// D1
	{"report forbidden", refused("wire: http://168.63.129.16/machine/?comp=health: 403 Forbidden: \"\""), "record fail report-forbidden"},
	{"short report gone", refused("wire: http://168.63.129.16/provisioning/health: 410 Gone: \"\""), "record fail report-refused"},
	{"report not answered", refused("wire: POST http://168.63.129.16/machine/?comp=health: no answer in 60s"), "record fail report-failed"},

	{"systemd does not answer", func(s *machine.Snapshot) {
		stopped(machine.Unit{})(s)
		s.Units = machine.Seen[map[string]machine.Unit]{Err: machine.NoAnswer(2 * time.Second)}
	}, "dispatcher skipped systemd-no-answer; timer skipped systemd-no-answer; agents skipped systemd-no-answer; resolved fail resolved-stopped"},
	{"waagent", unit("waagent.service", machine.Unit{File: "enabled"}), "agents warn other-agent"},
	{"cloud-init and azure-init", func(s *machine.Snapshot) {
		for _, name := range []string{"cloud-init.service", "cloud-init-network.service", "azure-init.service"} {
			s.Units.V[name] = machine.Unit{Active: "active"}
		}
	}, "agents warn other-agent"},
	{"cloud-init turned off", func(s *machine.Snapshot) {
		s.Units.V["cloud-init.service"] = machine.Unit{File: "enabled"}
		s.Conf.CloudInitOff = true
	}, ""},
	{"afterburn", unit("afterburn-checkin.service", machine.Unit{File: "enabled"}), ""},

	{"resolved masked", stopped(machine.Unit{File: "masked"}), "resolved fail resolved-stopped"},
	{"resolved stopped", stopped(machine.Unit{File: "enabled"}), "resolved fail resolved-stopped"},
	{"resolved missing", stopped(machine.Unit{}), "resolved fail resolved-missing"},
	{"resolved hangs", func(s *machine.Snapshot) {
		s.Resolved = machine.Seen[resolv.Snapshot]{Err: machine.NoAnswer(2 * time.Second)}
		s.Probes.File.V[0].Err, s.Probes.LookUp.Err = machine.NoAnswer(2*time.Second), machine.NoAnswer(2*time.Second)
	}, "resolved fail resolved-no-answer"},
	{"no resolved", func(s *machine.Snapshot) { noResolved(s, constant, second) }, "resolved skipped no-resolved"},
	{"no resolved, another nameserver", func(s *machine.Snapshot) { noResolved(s, other) }, "resolved skipped no-resolved; link-dns warn resolv-conf-other"},
	{"no resolved, nobody writes resolv.conf", func(s *machine.Snapshot) {
		noResolved(s)
		s.NM.V.DNSMode, s.NM.V.RcManager = "none", "unmanaged"
	}, "resolved skipped no-resolved; resolv-conf fail resolv-conf-empty; nm-dns warn nobody-writes-resolv-conf; link-dns fail resolv-conf-other; lookup fail lookup-failed"},
	{"no resolved, nobody writes resolv.conf, which is missing", func(s *machine.Snapshot) {
		noResolved(s)
		s.NM.V.DNSMode, s.NM.V.RcManager = "none", "unmanaged"
		s.Conf.ResolvConf.Err = fs.ErrNotExist
	}, "resolved skipped no-resolved; resolv-conf fail resolv-conf-unreadable; nm-dns warn nobody-writes-resolv-conf; link-dns fail resolv-conf-other; lookup fail lookup-failed"},
	{"resolv.conf missing", func(s *machine.Snapshot) {
		s.Conf.ResolvConf, s.Probes.File.V = machine.ResolvConf{File: "etc/resolv.conf", Err: fs.ErrNotExist}, nil
	}, "resolv-conf fail resolv-conf-unreadable; lookup fail lookup-failed"},
	{"resolv.conf is a broken link", func(s *machine.Snapshot) {
		s.Conf.ResolvConf, s.Probes.File.V = machine.ResolvConf{File: "run/NetworkManager/resolv.conf", Err: fs.ErrNotExist}, nil
	}, "resolv-conf fail resolv-conf-dangling; lookup fail lookup-failed"},
	{"resolv.conf missing, nss-resolve", func(s *machine.Snapshot) {
		s.Conf.Hosts = []string{"resolve", "dns"}
		s.Conf.ResolvConf, s.Probes.File.V = machine.ResolvConf{File: "etc/resolv.conf", Err: fs.ErrNotExist}, nil
	}, "resolv-conf warn resolv-conf-unreadable"},
	{"resolv.conf bypasses resolved", static(other), "resolv-conf warn resolv-conf-bypass"},
	// D5
	{"static resolv.conf that hangs", func(s *machine.Snapshot) {
		static(other)(s)
		s.Probes.File.V[0].Err = machine.NoAnswer(2 * time.Second)
	}, "resolv-conf warn resolv-conf-bypass; lookup fail lookup-failed"},
	{"static resolv.conf, the first server hangs", func(s *machine.Snapshot) {
		static(other, second)(s)
		s.Probes.File.V[0].Err = machine.NoAnswer(2 * time.Second)
	}, "resolv-conf warn resolv-conf-bypass; lookup warn lookup-slow"},
	{"the stub is off", func(s *machine.Snapshot) {
		s.Resolved.V.Stub = "no"
		s.Probes.File.V[0].Err = syscall.ECONNREFUSED
	}, "resolv-conf fail resolv-conf-stub-off; lookup fail lookup-stub"},
	{"the stub is blocked", func(s *machine.Snapshot) { s.Probes.File.V[0].Err = machine.NoAnswer(2 * time.Second) }, "lookup fail lookup-stub"},
	{"hosts: files", func(s *machine.Snapshot) { s.Conf.Hosts = nil }, "lookup fail lookup-no-service"},

	{"link without nameservers", lost, "link-dns fail nameservers-missing; lookup fail lookup-failed"},
	{"link without nameservers, no default route", func(s *machine.Snapshot) {
		s.Resolved.V.Links = nil
		s.Kernel.DefaultRoutes = nil
	}, "link-dns warn not-default-route"},
	// D2
	{"ignore-auto-dns", func(s *machine.Snapshot) {
		lost(s)
		s.NM.V.Configuration, device(s).Profile.IgnoreAutoDNS = nil, true
		device(s).Lease.Nameservers = []netip.Addr{second}
	}, "link-dns fail no-dns-config; lookup fail lookup-failed"},
	// D3
	{"ipv4.dns beside the lease's", func(s *machine.Snapshot) {
		lost(s)
		s.NM.V.Configuration, device(s).Profile.DNS = wants("203.0.113.1", "168.63.129.16", "10.77.0.1"), true
	}, "link-dns fail dns-differs-from-lease; lookup fail lookup-failed"},
	{"global-dns", func(s *machine.Snapshot) {
		lost(s)
		s.NM.V.GlobalDNS, s.NM.V.Configuration = true, []map[string]any{{"nameservers": []string{"203.0.113.1"}}}
		s.Conf.Global = "etc/NetworkManager/conf.d/dns.conf"
	}, "link-dns fail global-dns; lookup fail lookup-failed"},
	{"global-dns over D-Bus", func(s *machine.Snapshot) {
		lost(s)
		s.NM.V.GlobalDNS = true
	}, "link-dns fail global-dns; lookup fail lookup-failed"},
	// D4
	{"the VM is one of the lease's nameservers", func(s *machine.Snapshot) {
		device(s).Lease.Nameservers = []netip.Addr{own, second}
		s.NM.V.Configuration = wants("10.77.0.50", "10.77.0.1")
		s.Resolved.V.Links[2] = has(second)
		s.Records.Links["eth0"] = machine.Seen[boot.Link]{V: boot.Link{State: boot.Pushed, Nameservers: []netip.Addr{second}}}
	}, ""},
	{"NetworkManager 1.42 has lost the link's entry", func(s *machine.Snapshot) {
		s.NM.V.Configuration, device(s).IP4DNS = nil, nm.DNSConfig{Nameservers: []netip.Addr{constant, second}}
		s.Records.Links["eth0"] = machine.Seen[boot.Link]{V: boot.Link{State: boot.Pushed, Nameservers: []netip.Addr{constant, second}}}
	}, ""},
	{"the profile's own nameservers", func(s *machine.Snapshot) {
		s.NM.V.Configuration = wants("10.77.0.1")
		s.Resolved.V.Links[2] = has(second)
	}, ""},
	{"nothing wanted, something else configured them", func(s *machine.Snapshot) { s.NM.V.Configuration = nil }, ""},
	{"neither lease nor profile has nameservers", func(s *machine.Snapshot) {
		lost(s)
		s.NM.V.Configuration, device(s).Lease.Nameservers = nil, nil
	}, "lease warn lease-no-nameservers; link-dns fail no-nameservers-in-lease; lookup fail lookup-failed"},
	{"other nameservers that do not answer", func(s *machine.Snapshot) {
		silent(s)
		s.Resolved.V.Links[2] = has(other)
		s.Probes.Servers.V = []machine.Reply{{Answer: resolv.Answer{Server: other}, Err: resolv.ErrNoAnswer}}
	}, "link-dns fail other-servers; nameservers fail nameservers-silent; lookup fail lookup-failed"},
	{"other nameservers that answer", func(s *machine.Snapshot) { s.Resolved.V.Links[2] = has(other) }, "link-dns warn other-servers"},
	{"only global nameservers", func(s *machine.Snapshot) {
		s.Resolved.V.Links = nil
		s.Resolved.V.Global = []resolv.Server{{Addr: second}}
	}, "link-dns warn global-servers"},

	{"one nameserver silent", func(s *machine.Snapshot) { s.Probes.Servers.V[1].Err = resolv.ErrNoAnswer }, "nameservers warn nameserver-fails"},
	{"all nameservers silent", silent, "nameservers fail nameservers-silent; lookup fail lookup-failed"},
	{"nameservers refuse", func(s *machine.Snapshot) {
		s.Probes.Servers.V[0].Rcode, s.Probes.Servers.V[1].Rcode = 5, 99
		s.Probes.File.V[0].Rcode, s.Probes.LookUp.Err = 2, errors.New("could not")
	}, "nameservers fail nameservers-refuse; lookup fail lookup-failed"},
	{"no such name", func(s *machine.Snapshot) { s.Probes.File.V[0].Rcode = 3 }, ""},
	{"no such name, asked for by the operator", func(s *machine.Snapshot) {
		s.Probes.File.V[0].Rcode, s.Probes.Asked, s.Probes.Name = 3, true, "db.example"
	}, "lookup warn lookup-no-address"},
	{"no such name by nss-resolve, asked for by the operator", func(s *machine.Snapshot) {
		s.Conf.Hosts = []string{"resolve", "dns"}
		s.Probes.LookUp.V, s.Probes.Asked, s.Probes.Name = resolv.Found{Error: "org.freedesktop.resolve1.DnsError.NXDOMAIN"}, true, "db.example"
	}, "lookup warn lookup-no-address"},
	// D13
	{"DNSSEC", mode("yes", "no"), "lookup fail lookup-dnssec"},
	{"DNSOverTLS", mode("no", "yes"), "lookup fail lookup-dns-over-tls"},
	{"resolved fails for another reason", mode("no", "no"), "lookup fail lookup-failed"},
	// Nothing is wrong with the nameservers, and DNSSEC must not be turned off for it.
	{"DNSSEC, expired signatures", func(s *machine.Snapshot) {
		mode("yes", "no")(s)
		s.Probes.LookUp.Err = errors.New("DNSSEC validation failed: signature-expired (org.freedesktop.resolve1.DnssecFailed)")
	}, "lookup fail lookup-expired"},
	// D14
	{"another link takes all names", func(s *machine.Snapshot) {
		s.Kernel.Links = append(s.Kernel.Links, machine.Link{Name: "wg0", Index: 3})
		vpn := has(other)
		vpn.Domains = []resolv.Domain{{Name: ".", RouteOnly: true}}
		s.Resolved.V.Links[3] = vpn
		s.Probes.Public.Err = errors.New("timeout")
	}, "lookup fail lookup-other-link"},

	// D17
	{"networkd", byNetworkd, ""},
	{"networkd before 256", func(s *machine.Snapshot) {
		byNetworkd(s)
		s.Networkd.V[0].Lease.WireServer, s.Networkd.V[0].Lease.WireServerErr = netip.Addr{}, networkd.ErrOption245Unknown
	}, ""},
	{"networkd stopped", func(s *machine.Snapshot) {
		byNetworkd(s)
		nothing(s)
		s.Networkd = machine.Seen[[]networkd.Link]{Err: networkd.ErrNotRunning}
		s.Units.V[machine.UnitNetworkd] = machine.Unit{File: "enabled"}
	}, "device fail networkd-stopped; record fail no-check-in"},
	{"networkd hangs", func(s *machine.Snapshot) {
		byNetworkd(s)
		nothing(s)
		s.Networkd = machine.Seen[[]networkd.Link]{Err: machine.NoAnswer(2 * time.Second)}
	}, "device fail networkd-no-answer; record fail no-check-in"},
	{"networkd without lease", func(s *machine.Snapshot) {
		byNetworkd(s)
		unreached(syscall.ENETUNREACH)(s)
		nothing(s)
		s.Networkd.V[0].Lease = nil
	}, "lease fail no-lease; tcp-80 fail tcp-no-answer; record warn checking-in"},
	{"networkd static", func(s *machine.Snapshot) {
		byNetworkd(s)
		s.Networkd.V[0].Lease, s.Networkd.V[0].DHCP = nil, false
	}, "lease warn dhcp-off; option-245 skipped no-lease"},
	{"networkd lost the nameservers", func(s *machine.Snapshot) {
		byNetworkd(s)
		lost(s)
		s.Networkd.V[0].Lease, s.Networkd.V[0].Nameservers = nil, nil
	}, "lease warn no-lease; option-245 skipped no-lease; link-dns fail networkd-no-nameservers; lookup fail lookup-failed"},
	{"resolved lost networkd's nameservers", func(s *machine.Snapshot) {
		byNetworkd(s)
		lost(s)
	}, "link-dns fail nameservers-not-networkds; lookup fail lookup-failed"},
	{"networkd, resolved stopped", func(s *machine.Snapshot) {
		byNetworkd(s)
		stopped(machine.Unit{File: "enabled"})(s)
	}, "resolved fail resolved-stopped"},
	{"networkd has no route", func(s *machine.Snapshot) {
		byNetworkd(s)
		noRoute(syscall.ENETUNREACH)(s)
	}, "route fail route-missing; record warn trying"},
	{"networkd unmanaged", func(s *machine.Snapshot) {
		byNetworkd(s)
		nothing(s)
		s.Networkd.V[0] = networkd.Link{Name: "eth0", Index: 2, OperState: "degraded", AdminState: "unmanaged"}
	}, "device fail device-unmanaged; record fail no-check-in"},
	{"networkd no carrier", func(s *machine.Snapshot) {
		byNetworkd(s)
		nothing(s)
		s.Networkd.V[0].OperState, s.Networkd.V[0].Lease = "no-carrier", nil
	}, "device fail device-no-carrier; record fail no-check-in"},
}

const goalStateURL = "http://168.63.129.16/machine/?comp=goalstate"

func unit(name string, u machine.Unit) change {
	return func(s *machine.Snapshot) { s.Units.V[name] = u }
}

func hook(f func(*machine.Hook)) change { return func(s *machine.Snapshot) { f(&s.Hook) } }

func iface(name string) change { return func(s *machine.Snapshot) { s.Interface = name } }

func selinux(entry, target string) change {
	return hook(func(h *machine.Hook) { h.Enforce, h.EntryLabel, h.TargetLabel = "1", entry, target })
}

func nothing(s *machine.Snapshot) {
	s.Records.CheckIn = machine.Seen[boot.CheckIn]{Err: fs.ErrNotExist}
}

func noRoute(err error) change {
	return func(s *machine.Snapshot) {
		unreached(err)(s)
		s.Probes.Route = machine.Seen[machine.Route]{Err: err}
	}
}

func secondNIC(s *machine.Snapshot) {
	l := azureLease()
	l.Routes = nil
	s.NM.V.Devices = append(s.NM.V.Devices, nm.Device{Interface: "eth1", Managed: true, State: 100, Profile: nm.Profile{Name: "two"}, Lease: l})
}

func goalState(err error) change {
	return func(s *machine.Snapshot) {
		creating(s)
		s.Probes.GoalState.Err = err
	}
}

func refused(err string) change {
	return func(s *machine.Snapshot) {
		creating(s)
		s.Records.CheckIn.V.LastError = err
	}
}

func stopped(u machine.Unit) change {
	return func(s *machine.Snapshot) {
		s.Resolved = machine.Seen[resolv.Snapshot]{Err: resolv.ErrNotRunning}
		s.Units.V[machine.UnitResolved] = u
		s.Conf.ResolvConf = machine.ResolvConf{File: machine.StubFile, Err: fs.ErrNotExist}
		s.Probes.File.V, s.Probes.LookUp.Err = nil, resolv.ErrNotRunning
	}
}

func static(servers ...netip.Addr) change {
	return func(s *machine.Snapshot) {
		s.Conf.ResolvConf, s.Probes.File.V = machine.ResolvConf{File: "etc/resolv.conf", Servers: servers}, nil
		for _, a := range servers {
			s.Probes.File.V = append(s.Probes.File.V, reply(a, time.Millisecond))
		}
	}
}

// lost is a machine whose link has no nameservers in systemd-resolved.
func lost(s *machine.Snapshot) {
	s.Resolved.V.Links = nil
	s.Probes.File.V[0].Rcode = 2
	s.Probes.LookUp.Err = errors.New("no appropriate name servers or networks for name found (org.freedesktop.resolve1.NoNameServers)")
}

func mode(dnssec, tls string) change {
	return func(s *machine.Snapshot) {
		l := s.Resolved.V.Links[2]
		l.DNSSEC, l.DNSOverTLS = dnssec, tls
		s.Resolved.V.Links[2] = l
		s.Probes.File.V[0].Rcode, s.Probes.LookUp.Err = 2, errors.New("could not")
	}
}

func TestSteps(t *testing.T) {
	var texts strings.Builder
	for _, c := range cases {
		var got []string
		fmt.Fprintf(&texts, "%s\n", c.name)
		for _, s := range judge(c.change).Steps {
			if s.Verdict == doctor.OK || s.Verdict == doctor.Skipped && (s.Code == "not-checked" || s.Code == "networkd" || s.Code == "platform-unknown") {
				continue
			}
			got = append(got, fmt.Sprintf("%s %s %s", s.Name, s.Verdict, s.Code))
			fmt.Fprintf(&texts, "  %s: %s\n", s.Name, s.Seen)
			if s.Remedy != "" {
				fmt.Fprintf(&texts, "    -> %s\n", s.Remedy)
			}
			if strings.Contains(s.Remedy, "modify ''") || strings.Contains(s.Remedy, "up ''") || strings.HasSuffix(s.Remedy, " ") {
				t.Errorf("%s: a command without its object: %s", c.name, s.Remedy)
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	golden.Check(t, filepath.Join("testdata", "texts.golden"), texts.String())
}

// Where NetworkManager does not write resolv.conf, no command that makes it write the file is a remedy.
func TestNobodyWritesResolvConf(t *testing.T) {
	for _, c := range cases {
		steps := judge(c.change).Steps
		if !slices.ContainsFunc(steps, func(s doctor.Step) bool { return s.Code == "nobody-writes-resolv-conf" }) {
			continue
		}
		for _, s := range steps {
			if strings.Contains(s.Remedy, "dns-rc") {
				t.Errorf("%s: %s: %s", c.name, s.Name, s.Remedy)
			}
		}
	}
}

// Texts for a machine without NetworkManager do not mention it.
func TestNetworkdWithoutNetworkManager(t *testing.T) {
	for _, c := range cases {
		if !strings.HasPrefix(c.name, "networkd") {
			continue
		}
		for _, s := range judge(c.change).Steps {
			if text := s.Seen + s.Remedy; strings.Contains(text, "NetworkManager") || strings.Contains(text, "nmcli") {
				t.Errorf("%s: %s: %s -> %s", c.name, s.Name, s.Seen, s.Remedy)
			}
		}
	}
}
