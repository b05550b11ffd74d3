package lab

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
)

// Config says what is particular about a lab. The zero value is a virtual machine of Azure's with one interface, eth0,
// where NetworkManager takes a lease and passes its nameservers on to systemd-resolved.
type Config struct {
	Suite   string // of [Suites]; empty: bookworm
	Systemd bool   // the real systemd is the guest's PID 1, and starts the daemons

	Cmdline  string // of the kernel; empty: one that says Azure
	AssetTag string // DMI chassis asset tag; empty: a machine without DMI

	NICs     []string         // nil: eth0
	Profiles []Profile        // nil: one for DHCP for each of the NICs
	Lease    *Lease           // for every NIC; nil: AzureLease
	Leases   map[string]Lease // for the NICs named

	DNS        string // [main] dns= of NetworkManager; empty: not set
	ToResolved string // [main] systemd-resolved=, "true" or "false"; empty: not set, which is true
	NMConf     string // more lines for NetworkManager.conf
	Daemons    map[Daemon]State
	Product    *Product
	Files      map[string]string // more files of the guest, mode 0644
}

// azureCmdline is how Fedora CoreOS on Azure is booted, as far as this project cares.
const azureCmdline = "root=UUID=5c5a6d0e rw ignition.platform.id=azure"

func (c Config) withDefaults() Config {
	c.Suite, c.Cmdline = cmp.Or(c.Suite, Suites[0]), cmp.Or(c.Cmdline, azureCmdline)
	if c.Lease == nil {
		lease := AzureLease()
		c.Lease = &lease
	}
	if c.NICs == nil {
		c.NICs = []string{"eth0"}
	}
	if c.Profiles == nil {
		for _, nic := range c.NICs {
			c.Profiles = append(c.Profiles, Profile{ID: nic})
		}
	}
	return c
}

// networkManagerConf is the guest's NetworkManager.conf.
func (c Config) networkManagerConf() string {
	var b strings.Builder
	b.WriteString("[main]\nplugins=keyfile\nauth-polkit=false\nno-auto-default=*\ndhcp=internal\n")
	if c.DNS != "" {
		fmt.Fprintf(&b, "dns=%s\n", c.DNS)
	}
	if c.ToResolved != "" {
		fmt.Fprintf(&b, "systemd-resolved=%s\n", c.ToResolved)
	}
	b.WriteString("[logging]\nlevel=DEBUG\n[connectivity]\nenabled=false\n")
	return b.String() + c.NMConf
}

// Profile is a connection profile of NetworkManager. Settings have the form "section.key=value", spelled as in a
// keyfile. Without any it takes a lease on the interface of the same name, and has an IPv6 link-local address. The interface
// is up with the lease, never before: on a busy machine IPv6 could be faster otherwise.
type Profile struct {
	ID       string
	Settings []string
}

// path is where NetworkManager looks for the profile.
func (p Profile) path() string {
	return "/etc/NetworkManager/system-connections/" + p.ID + ".nmconnection"
}

// keyfile is the profile as NetworkManager reads it.
func (p Profile) keyfile() string {
	uuid := sha256.Sum256([]byte(p.ID))
	settings := append([]string{
		"connection.id=" + p.ID, "connection.interface-name=" + p.ID, "connection.type=ethernet",
		fmt.Sprintf("connection.uuid=%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:16]),
		"ipv4.method=auto", "ipv4.may-fail=false", "ipv6.method=link-local",
	}, p.Settings...)
	var b strings.Builder
	for _, s := range settings { // of two settings of a key the last one counts
		section, setting, _ := strings.Cut(s, ".")
		fmt.Fprintf(&b, "[%s]\n%s\n", section, setting)
	}
	return b.String()
}

// MAC is the hardware address of the guest's NIC of that name. It begins as Azure's do.
func MAC(nic string) string {
	sum := sha256.Sum256([]byte(nic))
	return fmt.Sprintf("00:0d:3a:%02x:%02x:%02x", sum[0], sum[1], sum[2])
}
