package boot

import (
	"net/netip"
	"time"
)

// CheckInState is the state of the check-in of a boot.
type CheckInState string

// The states of a check-in.
const (
	Trying CheckInState = "trying"
	Ready  CheckInState = "ready"
	Failed CheckInState = "failed" // ProvisioningFailed was reported: no automatic Ready in this boot
)

// Source is the source of the WireServer's address.
type Source string

// The sources of the address.
const (
	FromOption245 Source = "option-245"
	FromConstant  Source = "constant"
	FromOperator  Source = "operator"
)

// CheckIn is the record of a boot's check-in, check-in.json.
type CheckIn struct {
	BootID      string       `json:"boot_id"`
	State       CheckInState `json:"state"`
	WireServer  string       `json:"wireserver"`
	Source      Source       `json:"source"`
	Via         string       `json:"via"`         // "health" or "provisioning-health"
	Interface   string       `json:"interface"`   // whose lease it was; "" if none
	Incarnation string       `json:"incarnation"` // of the goal state; "" via provisioning-health
	ContainerID string       `json:"container_id"`
	InstanceID  string       `json:"instance_id"`
	Attempts    int          `json:"attempts"` // in this boot, by all processes
	LastError   string       `json:"last_error"`
	StartedAt   time.Time    `json:"started_at"`
	UpdatedAt   time.Time    `json:"updated_at"`
	AfterBootMS int64        `json:"after_boot_ms"` // of the last update, CLOCK_BOOTTIME
	// Initrd is set if the failure was reported from the initrd. The real root,
	// which is started only after a recovery, still checks in.
	Initrd bool `json:"initrd,omitempty"`
}

// LinkState is what this program has done for a link.
type LinkState string

// The states of a link.
const (
	Pushed LinkState = "pushed" // resolved has nameservers that this program configured
	Left   LinkState = "left"   // not changed although it lacks nameservers; Reason says why
	None   LinkState = "none"   // nothing is configured, and nothing to report
)

// Link is the record of a link, links/<ifindex>.json.
type Link struct {
	BootID      string       `json:"boot_id"`
	Interface   string       `json:"interface"`
	State       LinkState    `json:"state"`
	Reason      string       `json:"reason"`
	Nameservers []netip.Addr `json:"nameservers"` // what we pushed
	Domains     []string     `json:"domains"`     // what we pushed; empty if the link had its own
	UpdatedAt   time.Time    `json:"updated_at"`
}
