package boot

import (
	"net/netip"
	"time"
)

// CheckInState is how far the check-in of a boot has come.
type CheckInState string

// The states of a check-in.
const (
	Trying CheckInState = "trying"
	Ready  CheckInState = "ready"
	Failed CheckInState = "failed" // ProvisioningFailed was reported: no automatic Ready in this boot
)

// Source is where the WireServer's address came from.
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
	Attempts    int          `json:"attempts"` // in this boot, by all runs together
	LastError   string       `json:"last_error"`
	StartedAt   time.Time    `json:"started_at"`
	UpdatedAt   time.Time    `json:"updated_at"`
	AfterBootMS int64        `json:"after_boot_ms"` // of the last update, CLOCK_BOOTTIME
	// Initrd is set if the failure was reported from the initrd. Then the real
	// root, which comes up after a recovery only, checks in all the same.
	Initrd bool `json:"initrd,omitempty"`
}

// LinkState is what this program did to a link.
type LinkState string

// The states of a link.
const (
	Pushed LinkState = "pushed" // resolved has nameservers from us
	Left   LinkState = "left"   // it lacks them, and Reason says why we left it
	None   LinkState = "none"   // there is nothing of ours and nothing to say
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
