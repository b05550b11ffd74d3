package wire

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
)

// State is the state that a health report declares, as every agent spells it.
type State string

// The states.
const (
	StateReady    State = "Ready"
	StateNotReady State = "NotReady"
)

// MaxDescription bounds a description, in characters. The WireServer answers
// 500 to more than 4096 bytes (Azure/WALinuxAgent#2017); 512 characters stay
// below that however they are escaped.
const MaxDescription = 512

// Health is what is reported of this machine. Make it with [Ready] or
// [ProvisioningFailed].
type Health struct {
	State       State
	Description string // of a failure, shown to users who deploy the machine
}

// Ready says that the machine has come up.
func Ready() Health {
	return Health{State: StateReady}
}

// ProvisioningFailed says that the machine will not come up. Azure fails the
// deployment at once and shows the description, cut to MaxDescription and made
// UTF-8.
func ProvisioningFailed(description string) Health {
	description = strings.ToValidUTF8(description, "\ufffd")
	if runes := []rune(description); len(runes) > MaxDescription {
		description = string(runes[:MaxDescription])
	}
	return Health{State: StateNotReady, Description: description}
}

// The XML report, and its details if State is NotReady: the SubStatus makes Azure
// fail the deployment. The element around InstanceId is Role here, not RoleInstance.
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
	detailsXML = `<Details><SubStatus>ProvisioningFailed</SubStatus><Description>%s</Description></Details>`
)

// XML returns the body of POST /machine/?comp=health, for exactly this goal state.
func (h Health) XML(gs GoalState) []byte {
	details := ""
	if h.State == StateNotReady {
		details = fmt.Sprintf(detailsXML, escape(h.Description))
	}
	return fmt.Appendf(nil, healthXML, escape(gs.Incarnation), escape(gs.ContainerID), escape(gs.InstanceID), h.State, details)
}

// JSON returns the body of POST /provisioning/health, which names no goal state:
// the server knows the machine by its connection.
func (h Health) JSON() []byte {
	if h.State == StateReady {
		return fmt.Appendf(nil, `{"state":"%s"}`, h.State)
	}
	description, _ := json.Marshal(h.Description) // a string: it cannot fail
	return fmt.Appendf(nil, `{"state":"%s","details":{"subStatus":"ProvisioningFailed","description":%s}}`, h.State, description)
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
	return b.String()
}
