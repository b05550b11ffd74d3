package dispatch

// ReasonCode says why a Plan is as it is. The codes are stable.
type ReasonCode string

// The reasons.
const (
	UpToDate             ReasonCode = "up-to-date"
	NameserversMissing   ReasonCode = "nameservers-missing"
	DNSChanged           ReasonCode = "dns-config-changed"
	LinkDown             ReasonCode = "link-down"
	ActiveAgain          ReasonCode = "active-again"
	NotActivated         ReasonCode = "not-activated"
	External             ReasonCode = "external"
	NotDefaultRoute      ReasonCode = "not-default-route"
	NoLeaseServers       ReasonCode = "no-nameservers-in-lease"
	NoDNSConfig          ReasonCode = "no-dns-config"
	GlobalDNS            ReasonCode = "global-dns"
	DNSDiffers           ReasonCode = "dns-differs-from-lease"
	GlobalServers        ReasonCode = "global-servers"
	OtherServers         ReasonCode = "other-servers"
	ManagedByNetworkd    ReasonCode = "link-managed-by-networkd"
	ResolvedUnavailable  ReasonCode = "resolved-unavailable"
	ResolvedFailed       ReasonCode = "resolved-failed"
	NetworkManagerFailed ReasonCode = "networkmanager-failed"
)

// Sentence returns the reason in words, as records and journal have it.
func (c ReasonCode) Sentence() string {
	return map[ReasonCode]string{
		UpToDate:             "the link's nameservers are up to date",
		NameserversMissing:   "systemd-resolved has no nameservers for the link",
		DNSChanged:           "NetworkManager's DNS configuration of the link has changed",
		LinkDown:             "the link went down",
		ActiveAgain:          "the device is active again",
		NotActivated:         "the device is not activated",
		External:             "NetworkManager did not configure the device",
		NotDefaultRoute:      "the link has no IPv4 default route",
		NoLeaseServers:       "the device has no DHCPv4 lease with nameservers",
		NoDNSConfig:          "NetworkManager wants no nameservers for the link (ipv4.ignore-auto-dns, or no DNS configuration yet)",
		GlobalDNS:            "NetworkManager has a global DNS configuration ([global-dns] in NetworkManager.conf)",
		DNSDiffers:           "NetworkManager wants other nameservers than the lease has (ipv4.dns or the like)",
		GlobalServers:        "systemd-resolved has global nameservers (DNS= in resolved.conf, or the administrator's resolv.conf)",
		OtherServers:         "something else configured other nameservers for the link",
		ManagedByNetworkd:    "systemd-networkd manages the link",
		ResolvedUnavailable:  "systemd-resolved is not available",
		ResolvedFailed:       "systemd-resolved did not answer, or refused the change",
		NetworkManagerFailed: "NetworkManager did not answer, or with an error",
	}[c]
}
