package wiretest

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strings"
)

// GoalState is the part of a goal state that a health report must repeat.
type GoalState struct {
	Incarnation string
	ContainerID string
	InstanceID  string
}

// DefaultGoalState is the goal state of a script that has none.
var DefaultGoalState = GoalState{
	Incarnation: "7",
	ContainerID: "2a5f3c1e-0b7d-4f55-9a41-6f1f0c9be2d3",
	InstanceID:  "4b1c7c80-3c5e-4e0e-9d3e-8f6f5a1b2c3d._testvm",
}

// Document is a goal state in the shape of the real ones: with the elements
// that a check-in does not need, in no namespace.
const Document = `<?xml version="1.0" encoding="utf-8"?>
<GoalState xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="goalstate10.xsd">
  <Version>2012-11-30</Version>
  <Incarnation>$INCARNATION</Incarnation>
  <Machine>
    <ExpectedState>Started</ExpectedState>
    <StopRolesDeadlineHint>300000</StopRolesDeadlineHint>
    <LBProbePorts><Port>16001</Port></LBProbePorts>
    <ExpectHealthReport>FALSE</ExpectHealthReport>
  </Machine>
  <Container>
    <ContainerId>$CONTAINER</ContainerId>
    <RoleInstanceList>
      <RoleInstance>
        <InstanceId>$INSTANCE</InstanceId>
        <State>Started</State>
        <Configuration>
          <SharedConfig>http://168.63.129.16:80/machine/$CONTAINER/$INSTANCE?comp=config&amp;type=sharedConfig&amp;incarnation=$INCARNATION</SharedConfig>
          <ConfigName>$CONTAINER.0.$CONTAINER.0._testvm.1.xml</ConfigName>
        </Configuration>
      </RoleInstance>
    </RoleInstanceList>
  </Container>
</GoalState>
`

// versions is what GET /?comp=versions answers: some agents ask before all else.
const versions = `<?xml version="1.0" encoding="utf-8"?>
<Versions><Preferred><Version>2015-04-05</Version></Preferred><Supported><Version>2015-04-05</Version><Version>2012-11-30</Version></Supported></Versions>
`

// maxDescription is where the real server answers 500 (Azure/WALinuxAgent#2017).
const maxDescription = 4096

// answer is what goes back, as far as the script has no say in it.
type answer struct {
	status int
	header map[string]string
	body   string
	filler int // so many bytes follow the body
}

func xmlAnswer(status int, body string) answer {
	return answer{status: status, body: body, header: map[string]string{"Content-Type": "text/xml; charset=utf-8"}}
}

// serveGoalState answers a GET for the goal state.
func (g GoalState) serveGoalState(header http.Header) answer {
	if header.Get("x-ms-version") == "" {
		return xmlAnswer(http.StatusBadRequest, "<Error>x-ms-version is missing</Error>")
	}
	return xmlAnswer(http.StatusOK, g.expand(Document))
}

// serveHealth answers an XML report: 400 to what cannot be read or is of another
// machine, 410 to a stale incarnation, 500 to a description that is too long.
func (g GoalState) serveHealth(header http.Header, body string) answer {
	var report struct {
		XMLName     xml.Name `xml:"Health"`
		Incarnation string   `xml:"GoalStateIncarnation"`
		ContainerID string   `xml:"Container>ContainerId"`
		Role        []struct {
			InstanceID  string `xml:"InstanceId"`
			State       string `xml:"Health>State"`
			Description string `xml:"Health>Details>Description"`
		} `xml:"Container>RoleInstanceList>Role"`
	}
	switch err := xml.Unmarshal([]byte(body), &report); {
	case header.Get("x-ms-version") == "":
		return xmlAnswer(http.StatusBadRequest, "<Error>x-ms-version is missing</Error>")
	case err != nil || len(report.Role) != 1 || !knownState(report.Role[0].State):
		return xmlAnswer(http.StatusBadRequest, "<Error>not a health report</Error>")
	case report.Incarnation != g.Incarnation:
		return xmlAnswer(http.StatusGone, "<Error>stale incarnation</Error>")
	case report.ContainerID != g.ContainerID || report.Role[0].InstanceID != g.InstanceID:
		return xmlAnswer(http.StatusBadRequest, "<Error>InvalidContainerConfiguration</Error>")
	case len(report.Role[0].Description) > maxDescription:
		return xmlAnswer(http.StatusInternalServerError, "")
	}
	ok := xmlAnswer(http.StatusOK, "")
	ok.header["x-ms-latest-goal-state-incarnation-number"] = g.Incarnation
	return ok
}

// serveProvisioning answers a JSON report.
func serveProvisioning(body string) answer {
	var report struct {
		State string `json:"state"`
	}
	if err := json.Unmarshal([]byte(body), &report); err != nil || !knownState(report.State) {
		return answer{status: http.StatusBadRequest, body: "not a health report"}
	}
	return answer{status: http.StatusCreated}
}

func knownState(s string) bool { return s == "Ready" || s == "NotReady" }

// expand puts the goal state's values into a document.
func (g GoalState) expand(document string) string {
	escaped := func(s string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
		return b.String()
	}
	return strings.NewReplacer(
		"$INCARNATION", escaped(g.Incarnation),
		"$CONTAINER", escaped(g.ContainerID),
		"$INSTANCE", escaped(g.InstanceID),
	).Replace(document)
}
