package doctor

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// shell quotes a word for the shell if necessary.
func shell(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// modify returns the commands that change the profile; none if it is not known.
func modify(profile, settings string) []string {
	if profile == "" {
		return nil
	}
	return []string{"sudo nmcli connection modify " + shell(profile) + " " + settings, "sudo nmcli connection up " + shell(profile)}
}

// enable returns the commands that enable and start a unit, and those that follow.
func enable(s *machine.Snapshot, unit string, then ...string) []string {
	run := append([]string{"sudo systemctl enable --now " + unit}, then...)
	if s.Units.V[unit].Masked() {
		run = append([]string{"sudo systemctl unmask " + unit}, run...)
	}
	return run
}

// again returns the command that makes the hook run again.
func again(s *machine.Snapshot) string {
	d, known := s.Device()
	switch {
	case s.ByNetworkd() || !known || s.NM.Err != nil:
		return checkIn(s)
	case number(s.NM.V.Version) < reapplyFrom && d.Profile.Name != "":
		return "sudo nmcli connection up " + shell(d.Profile.Name)
	}
	return "sudo nmcli device reapply " + shell(s.Interface)
}

// reconfigure returns the command that configures the interface's routes again;
// with systemd-networkd it also queries the DHCP server.
func reconfigure(s *machine.Snapshot) string {
	if s.ByNetworkd() {
		return "sudo networkctl reconfigure " + shell(s.Interface)
	}
	return again(s)
}

// checkIn returns the command that checks in, with the unit if systemd has it.
func checkIn(s *machine.Snapshot) string {
	if s.Units.V[machine.UnitCheckIn].File == "" {
		return "sudo nm-azure-dispatch check-in"
	}
	return "sudo systemctl start " + machine.UnitCheckIn
}

// list joins addresses for messages.
func list(addrs []netip.Addr) string {
	return cmp.Or(strings.Trim(fmt.Sprint(addrs), "[]"), "none")
}
