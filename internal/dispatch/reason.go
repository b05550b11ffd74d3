package dispatch

// Reason says why a Plan is as it is.
type Reason struct {
	Code string // stable
	Text string // as records and the journal have it
}

// The reasons.
var (
	UpToDate             = Reason{"up-to-date", "the link's nameservers are up to date"}
	NameserversMissing   = Reason{"nameservers-missing", "systemd-resolved has no nameservers for the link"}
	DNSChanged           = Reason{"dns-config-changed", "NetworkManager's DNS configuration of the link has changed"}
	LinkDown             = Reason{"link-down", "the link went down"}
	ActiveAgain          = Reason{"active-again", "the device is active again"}
	NotActivated         = Reason{"not-activated", "the device is not activated"}
	External             = Reason{"external", "NetworkManager did not configure the device"}
	NotDefaultRoute      = Reason{"not-default-route", "the link has no IPv4 default route"}
	NoLeaseServers       = Reason{"no-nameservers-in-lease", "the device has no DHCPv4 lease with nameservers"}
	NoDNSConfig          = Reason{"no-dns-config", "NetworkManager wants no nameservers for the link (ipv4.ignore-auto-dns, or no DNS configuration yet)"}
	GlobalDNS            = Reason{"global-dns", "NetworkManager has a global DNS configuration ([global-dns] in NetworkManager.conf)"}
	DNSDiffers           = Reason{"dns-differs-from-lease", "NetworkManager wants other nameservers than the lease has (ipv4.dns or the like)"}
	GlobalServers        = Reason{"global-servers", "systemd-resolved has global nameservers (DNS= in resolved.conf, or the administrator's resolv.conf)"}
	OtherServers         = Reason{"other-servers", "something else configured other nameservers for the link"}
	ManagedByNetworkd    = Reason{"link-managed-by-networkd", "systemd-networkd manages the link"}
	ResolvedUnavailable  = Reason{"resolved-unavailable", "systemd-resolved is not available"}
	ResolvedFailed       = Reason{"resolved-failed", "systemd-resolved did not answer, or refused the change"}
	NetworkManagerFailed = Reason{"networkmanager-failed", "NetworkManager did not answer, or with an error"}
)
