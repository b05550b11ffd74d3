package faults

import (
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

const oddGroup = "Answers that are odd, and in order"

// documents are the odd shapes of a goal state that is in order: the first attempt must do.
func documents() []Case {
	change := func(pairs ...string) wiretest.Step {
		return wiretest.Step{Body: new(strings.NewReplacer(pairs...).Replace(wiretest.Document))}
	}
	decoy := "<Incarnation>9</Incarnation><Container><ContainerId>x</ContainerId><RoleInstanceList><RoleInstance>" +
		"<InstanceId>x</InstanceId></RoleInstance></RoleInstanceList></Container>"
	shapes := []struct {
		name string
		step wiretest.Step
		peer Peer
	}{
		{"byte order mark", wiretest.Step{Body: new("\ufeff" + wiretest.Document)}, atOnce},
		{"CRLF", change("\n", "\r\n"), atOnce},
		{"one line", change("\n", ""), atOnce},
		{"chunked", wiretest.Step{Chunked: true}, atOnce},
		{"default namespace", change("<GoalState ", `<GoalState xmlns="urn:a" `), atOnce},
		{"prefixed namespace", change("</", "</a:", "<?", "<?", "<GoalState ", `<a:GoalState xmlns:a="urn:a" `, "<", "<a:"), atOnce},
		{"several role instances", change("</RoleInstanceList>", "<RoleInstance><InstanceId>x</InstanceId></RoleInstance></RoleInstanceList>"), noPeer},
		{"decoys in a comment", change("<Machine>", "<!-- "+decoy+" --><Machine>"), atOnce},
		{"decoys elsewhere", change("<Machine>", "<Machine>"+decoy), noPeer},
		{"HTTP/1.0", wiretest.Step{HTTP10: true}, noPeer},
		{"1xx answers ahead", wiretest.Step{Informational: []int{100, 102, 103}}, noPeer},
		{"padding behind it", wiretest.Step{Body: new(wiretest.Document + "\x00\x00\x00")}, noPeer},
	}
	var all []Case
	for _, s := range shapes {
		s.step.Times = -1
		all = append(all, Case{
			Name: "goal state: " + s.name, Group: oddGroup,
			Script: wiretest.Script{GoalState: steps(s.step)}, Peer: s.peer,
			Want: Want{Via: "health", Requests: []string{get, post}},
		})
	}
	// The report may go out on the connection before that is known to be closed: then it costs a retry.
	all = append(all, Case{
		Name: "goal state: connection closed behind it, unannounced", Group: oddGroup,
		Script: wiretest.Script{GoalState: steps(repeat(wiretest.Step{CloseAfter: true}, -1))},
		Want:   Want{Within: 1750 * ms},
	})
	for _, s := range []struct {
		name string
		step wiretest.Step
	}{
		{"HTTP/1.0", wiretest.Step{HTTP10: true}},
		{"1xx answers ahead", wiretest.Step{Informational: []int{100, 102, 103}}},
		{"201", wiretest.Step{Status: 201}},
	} {
		all = append(all, Case{
			Name: "health: " + s.name, Group: oddGroup,
			Script: wiretest.Script{Health: steps(s.step)},
			Want:   Want{Via: "health", Requests: []string{get, post}},
		})
	}
	// It can be a page, so it is waited for; a fresh attempt starts beside it.
	return append(all, Case{
		Name: "health: a body that never ends", Group: oddGroup,
		Script: wiretest.Script{Health: steps(wiretest.Step{BodyBytes: 100 * megabyte, Trickle: wiretest.Duration(time.Second)})},
		Want:   Want{Within: 3 * time.Second, Via: "health", Readys: 2},
	})
}
