package wire

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
)

// State is the state that a health report declares.
type State string

// The states, as every agent spells them.
const (
	StateReady    State = "Ready"
	StateNotReady State = "NotReady"
)

// SubStatus refines StateNotReady. The zero value means none.
type SubStatus string

// SubStatusProvisioningFailed makes Azure fail the deployment. Other agents also
// send "Provisioning", which this program has no use for.
const SubStatusProvisioningFailed SubStatus = "ProvisioningFailed"

// MaxDescription bounds a description, in characters. The WireServer answers
// 500 to more than 4096 bytes (Azure/WALinuxAgent#2017); 512 characters stay
// below that however they are escaped. cloud-init cuts at the same length.
const MaxDescription = 512

// Health is what is reported of this machine. Make it with [Ready] or
// [ProvisioningFailed].
type Health struct {
	State       State
	SubStatus   SubStatus
	Description string // shown to users who deploy the machine
}

// Ready says that the machine has come up.
func Ready() Health {
	return Health{State: StateReady}
}

// ProvisioningFailed says that the machine will not come up. Azure fails the
// deployment at once and shows the description, which is cut to 512 characters;
// bytes that are not UTF-8 are replaced.
func ProvisioningFailed(description string) Health {
	description = strings.ToValidUTF8(description, "\ufffd")
	if runes := []rune(description); len(runes) > MaxDescription {
		description = string(runes[:MaxDescription])
	}
	return Health{State: StateNotReady, SubStatus: SubStatusProvisioningFailed, Description: description}
}

// The XML report, and what is in it behind State if that has a SubStatus. The
// element around InstanceId is called Role here, not RoleInstance as in the goal
// state.
const (
	healthXML = `<?xml version="1.0" encoding="utf-8"?>
<Health xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">
  <GoalStateIncarnation>%s</GoalStateIncarnation>
  <Container>
    <ContainerId>%s</ContainerId>
    <RoleInstanceList>
      <Role>
        <InstanceId>%s</InstanceId>
        <Health><State>%s</State>%s</Health>
      </Role>
    </RoleInstanceList>
  </Container>
</Health>
`
	detailsXML = `<Details><SubStatus>%s</SubStatus><Description>%s</Description></Details>`
)

// XML returns the body of POST /machine/?comp=health: the report for exactly
// this goal state.
func (h Health) XML(gs GoalState) []byte {
	details := ""
	if h.SubStatus != "" {
		details = fmt.Sprintf(detailsXML, h.SubStatus, escape(h.Description))
	}
	return fmt.Appendf(nil, healthXML, escape(gs.Incarnation), escape(gs.ContainerID), escape(gs.InstanceID), h.State, details)
}

// JSON returns the body of POST /provisioning/health, which names no goal state:
// the server knows the machine by its connection.
func (h Health) JSON() []byte {
	if h.SubStatus == "" {
		return fmt.Appendf(nil, `{"state":"%s"}`, h.State)
	}
	description, _ := json.Marshal(h.Description) // a string: it cannot fail
	return fmt.Appendf(nil, `{"state":"%s","details":{"subStatus":"%s","description":%s}}`, h.State, h.SubStatus, description)
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
	return b.String()
}
