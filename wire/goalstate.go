package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// maxID bounds each identifier of a goal state, in bytes. Real ones have about
// 40 ("<guid>._name"); agents in C keep them in buffers of 64.
const maxID = 256

// GoalState is what the WireServer wants of this machine, less everything that
// a check-in does not need. A health report must carry the same three values,
// or is answered with 410 Gone.
type GoalState struct {
	// Incarnation counts the goal states: decimal digits. It stays text, as it is
	// only ever sent back.
	Incarnation string
	// ContainerID is the machine's place on its host, usually a GUID. It can
	// change while the incarnation stays (a machine that was hibernated).
	ContainerID string
	// InstanceID is the machine's name in its deployment.
	InstanceID string
}

// ParseGoalState reads the document that GET /machine/?comp=goalstate answers
// with. It demands UTF-8 (a byte order mark is allowed), no document type
// declaration, a complete GoalState element in any namespace as the root, and
// in it a usable Incarnation, ContainerId and InstanceId: not empty, without
// control characters, at most 256 bytes. White space around them is dropped.
// Of several containers or role instances the first counts, as it does for
// every other agent.
//
// What follows the root element is not read. Whatever it is (padding, a second
// document), it cannot change what the complete element said, and no machine
// need stay in Creating for it.
//
// Every error is worth another request: a role instance, for one, can be
// missing for a moment (Azure/WALinuxAgent#2016). The caller bounds r.
func ParseGoalState(r io.Reader) (GoalState, error) {
	doc, err := decodeGoalState(r)
	if err != nil {
		return GoalState{}, fmt.Errorf("wire: goal state: %w", err)
	}
	var container containerElement
	if len(doc.Containers) > 0 {
		container = doc.Containers[0]
	}
	var role roleElement
	if len(container.Roles) > 0 {
		role = container.Roles[0]
	}

	var gs GoalState
	for _, id := range []struct {
		name  string
		found []string
		to    *string
	}{
		{"Incarnation", doc.Incarnations, &gs.Incarnation},
		{"ContainerId", container.IDs, &gs.ContainerID},
		{"InstanceId", role.IDs, &gs.InstanceID},
	} {
		if *id.to, err = firstID(id.found); err != nil {
			return GoalState{}, fmt.Errorf("wire: goal state: %s: %w", id.name, err)
		}
	}
	if strings.Trim(gs.Incarnation, "0123456789") != "" {
		return GoalState{}, fmt.Errorf("wire: goal state: Incarnation: %q is not a decimal number", gs.Incarnation)
	}
	return gs, nil
}

func firstID(found []string) (string, error) {
	if len(found) == 0 {
		return "", errors.New("missing")
	}
	id := strings.TrimSpace(found[0])
	switch {
	case id == "":
		return "", errors.New("empty")
	case len(id) > maxID:
		return "", fmt.Errorf("%d bytes long, the limit is %d", len(id), maxID)
	case strings.ContainsFunc(id, unicode.IsControl):
		return "", fmt.Errorf("%q has control characters", id)
	}
	return id, nil
}
