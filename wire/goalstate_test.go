package wire_test

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// minimal has what a check-in needs and nothing else.
const minimal = `<GoalState><Incarnation>1</Incarnation><Container><ContainerId>c</ContainerId>` +
	`<RoleInstanceList><RoleInstance><InstanceId>i</InstanceId></RoleInstance></RoleInstanceList></Container></GoalState>`

var minimalIDs = wire.GoalState{Incarnation: "1", ContainerID: "c", InstanceID: "i"}

// goodDocuments are shapes of a goal state that a check-in must understand. All
// say the same as minimal.
var goodDocuments = []struct{ name, doc string }{
	{"minimal", minimal},
	{"declaration", `<?xml version="1.0" encoding="utf-8"?>` + minimal},
	{"declaration in capitals", `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + minimal},
	{"byte order mark", "\ufeff" + `<?xml version="1.0" encoding="utf-8"?>` + minimal},
	{"byte order mark alone", "\ufeff" + minimal},
	{"CRLF and white space around the ids", "<?xml version=\"1.0\"?>\r\n" + strings.NewReplacer(
		">1<", ">\r\n\t1\r\n<", ">c<", "> c <", ">i<", ">\n\u00a0i\n<").Replace(minimal) + "\r\n"},
	{"default namespace", strings.Replace(minimal, "<GoalState>", `<GoalState xmlns="urn:x">`, 1)},
	{"prefixed namespace", strings.Replace(strings.NewReplacer("</", "</w:", "<", "<w:").Replace(minimal),
		"<w:GoalState>", `<w:GoalState xmlns:w="urn:x">`, 1)},
	{"prefixed root only", strings.NewReplacer("<GoalState>", `<w:GoalState xmlns:w="urn:x">`, "</GoalState>", "</w:GoalState>").Replace(minimal)},
	{"CDATA", strings.NewReplacer(">c<", "><![CDATA[c]]><", ">i<", "><![CDATA[i]]><").Replace(minimal)},
	{"character references", strings.NewReplacer(">c<", ">&#99;<", ">i<", ">&#x69;<").Replace(minimal)},
	{"comment ahead", "<!-- <GoalState><Incarnation>9</Incarnation></GoalState> -->" + minimal},
	{"several containers", strings.Replace(minimal, "</GoalState>", `<Container><ContainerId>x</ContainerId></Container></GoalState>`, 1)},
	{"several role instances", strings.Replace(minimal, "</RoleInstanceList>",
		`<RoleInstance><InstanceId>x</InstanceId></RoleInstance></RoleInstanceList>`, 1)},
	{"ids twice", strings.NewReplacer("</Incarnation>", "</Incarnation><Incarnation>9</Incarnation>",
		"</ContainerId>", "</ContainerId><ContainerId>x</ContainerId>",
		"</InstanceId>", "</InstanceId><InstanceId>x</InstanceId>").Replace(minimal)},
	{"ids in a comment", strings.Replace(minimal, "<Container>",
		`<!-- <Incarnation>9</Incarnation><Container><ContainerId>x</ContainerId></Container> --><Container>`, 1)},
	{"decoys ahead", strings.Replace(minimal, "<Incarnation>", `<ContainerId>x</ContainerId><InstanceId>x</InstanceId>`+
		`<Machine><Incarnation>9</Incarnation><Container><ContainerId>x</ContainerId></Container></Machine><Incarnation>`, 1)},
	{"decoys in the container", strings.Replace(minimal, "<ContainerId>", `<Incarnation>9</Incarnation>`+
		`<Old><ContainerId>x</ContainerId><RoleInstanceList><RoleInstance><InstanceId>x</InstanceId></RoleInstance></RoleInstanceList></Old>`+
		`<InstanceId>x</InstanceId><RoleInstance><InstanceId>x</InstanceId></RoleInstance><ContainerId>`, 1)},
	{"decoys in the role instance", strings.Replace(minimal, "<InstanceId>",
		`<Configuration><InstanceId>x</InstanceId><ContainerId>x</ContainerId></Configuration><InstanceId>`, 1)},
	{"comment behind", minimal + "\n<!-- done -->\n"},
	{"padding behind", minimal + "\x00\x00\x00"},
	{"another document behind", minimal + "<html></html>"},
	{"truncated behind", minimal + "<!-- "},
}

// badDocuments are bodies of a 200 that are no goal state, or not a whole one.
var badDocuments = []struct{ name, doc, err string }{
	{"empty", "", `no root element`},
	{"white space", " \r\n\t", `no root element`},
	{"byte order mark", "\ufeff", `no root element`},
	{"comment", "<!-- nothing -->", `no root element`},
	{"text", "service unavailable", `"service unavailable" is before the root element`},
	{"text ahead", "200 OK " + minimal, `"200 OK" is before the root element`},
	{"binary", "\x00\x01\x02", `XML syntax error on line 1: illegal character code U+0000`},
	{"JSON", `{"incarnation":1}`, `"{\"incarnation\":1}" is before the root element`},
	{"HTML", `<html><head></head></html>`, `root element is "html", want "GoalState"`},
	{"HTML with doctype", `<!DOCTYPE html><html></html>`, `document type declaration "<!DOCTYPE html>" refused`},
	{"doctype", `<!DOCTYPE GoalState [<!ENTITY c "c">]>` + minimal, `document type declaration "<!DOCTYPE GoalState [<!ENTITY c \"c\">]>" refused`},
	{"doctype inside", strings.Replace(minimal, "<Container>", "<!DOCTYPE x><Container>", 1), `document type declaration "<!DOCTYPE x>" refused`},
	{"entity", strings.Replace(minimal, ">c<", ">&c;<", 1), `XML syntax error on line 1: invalid character entity &c;`},
	{"root in another case", `<goalstate></goalstate>`, `root element is "goalstate", want "GoalState"`},
	{"root too deep", "<Body>" + minimal + "</Body>", `root element is "Body", want "GoalState"`},
	{"UTF-16 declared", `<?xml version="1.0" encoding="utf-16"?>` + minimal, `xml: opening charset "utf-16": encoding is "utf-16", want utf-8`},
	{"Latin-1 declared", `<?xml version="1.0" encoding="iso-8859-1"?>` + minimal, `xml: opening charset "iso-8859-1": encoding is "iso-8859-1", want utf-8`},
	{"UTF-16", "\xff\xfe<\x00G\x00", `XML syntax error on line 1: invalid UTF-8`},
	{"not UTF-8", strings.Replace(minimal, ">c<", ">\xe9<", 1), `XML syntax error on line 1: invalid UTF-8`},
	{"XML 1.1", `<?xml version="1.1"?>` + minimal, `xml: unsupported version "1.1"; only version 1.0 is supported`},
	{"nested deep", strings.Repeat("<GoalState>", 1_000) + strings.Repeat("</GoalState>", 1_000), `Incarnation: missing`},
	{"many elements", "<GoalState>" + strings.Repeat("<Container/>", 2_000) + "</GoalState>", `Incarnation: missing`},
	{"much text", "<GoalState><Incarnation>" + strings.Repeat("1<![CDATA[2]]>3", 10_000) + "</Incarnation></GoalState>", `Incarnation: 30000 bytes long, the limit is 256`},
	{"thousands of attributes", "<GoalState " + strings.Repeat(`a="" `, 4000) + "/>", `Incarnation: missing`},
	{"truncated in a tag", minimal[:len(minimal)/2], ``},
	{"truncated before the end", strings.TrimSuffix(minimal, "</GoalState>"), `XML syntax error on line 1: unexpected EOF`},
	{"truncated in the end", strings.TrimSuffix(minimal, ">"), `XML syntax error on line 1: unexpected EOF`},
	{
		"wrongly nested", strings.Replace(minimal, "</Container></GoalState>", "</GoalState></Container>", 1),
		`XML syntax error on line 1: element <Container> closed by </GoalState>`,
	},
	{"no incarnation", strings.Replace(minimal, "Incarnation", "X", 2), `Incarnation: missing`},
	{"no container", `<GoalState><Incarnation>1</Incarnation></GoalState>`, `ContainerId: missing`},
	{"no container id", strings.Replace(minimal, "<ContainerId>c</ContainerId>", "", 1), `ContainerId: missing`},
	{"no role instances", strings.NewReplacer("<RoleInstanceList>", "<!--", "</RoleInstanceList>", "-->").Replace(minimal), `InstanceId: missing`},
	{"no instance id in the first role instance", strings.Replace(minimal, "<RoleInstance>", "<RoleInstance/><RoleInstance>", 1), `InstanceId: missing`},
	{"no id in the first container", strings.Replace(minimal, "<Container>", "<Container/><Container>", 1), `ContainerId: missing`},
	{"empty incarnation", strings.Replace(minimal, ">1<", "><", 1), `Incarnation: empty`},
	{"blank container id", strings.Replace(minimal, ">c<", "> \r\n <", 1), `ContainerId: empty`},
	{"empty instance id", strings.Replace(minimal, "<InstanceId>i</InstanceId>", "<InstanceId/>", 1), `InstanceId: empty`},
	{"empty first incarnation", strings.Replace(minimal, "<Incarnation>", "<Incarnation/><Incarnation>", 1), `Incarnation: empty`},
	{"incarnation negative", strings.Replace(minimal, ">1<", ">-1<", 1), `Incarnation: "-1" is not a decimal number`},
	{"incarnation hexadecimal", strings.Replace(minimal, ">1<", ">0x1<", 1), `Incarnation: "0x1" is not a decimal number`},
	{"incarnation in other digits", strings.Replace(minimal, ">1<", ">١<", 1), `Incarnation: "١" is not a decimal number`},
	{"incarnation in two parts", strings.Replace(minimal, ">1<", ">1 2<", 1), `Incarnation: "1 2" is not a decimal number`},
	{"newline in an id", strings.Replace(minimal, ">c<", ">c\nc<", 1), `ContainerId: "c\nc" has control characters`},
	{"control character in an id", strings.Replace(minimal, ">i<", ">i&#x85;i<", 1), `InstanceId: "i\u0085i" has control characters`},
	{"long id", strings.Replace(minimal, ">i<", ">"+strings.Repeat("i", 257)+"<", 1), `InstanceId: 257 bytes long, the limit is 256`},
}

func TestParseGoalState(t *testing.T) {
	for _, tt := range goodDocuments {
		t.Run(tt.name, func(t *testing.T) {
			got, err := wire.ParseGoalState([]byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(minimalIDs, got); diff != "" {
				t.Errorf("goal state (-want +got):\n%s", diff)
			}
		})
	}
	for _, tt := range badDocuments {
		t.Run(tt.name, func(t *testing.T) {
			got, err := wire.ParseGoalState([]byte(tt.doc))
			if err == nil {
				t.Fatalf("got %+v, want an error", got)
			}
			if tt.err == "" {
				return // any is enough
			}
			if diff := cmp.Diff(tt.err, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the prefix of a document, it is refused: a truncated answer never
// makes a report.
func TestParseGoalStateTruncated(t *testing.T) {
	doc := strings.Replace(minimal, ">c<", ">container<", 1)
	for n := range len(doc) {
		if got, err := wire.ParseGoalState([]byte(doc[:n])); err == nil {
			t.Errorf("first %d bytes: got %+v, want an error", n, got)
		}
	}
}

func TestParseGoalStateLongestIDs(t *testing.T) {
	long := strings.Repeat("9", 256)
	doc := strings.NewReplacer(">1<", ">"+long+"<", ">c<", ">"+long+"<", ">i<", ">"+long+"<").Replace(minimal)
	got, err := wire.ParseGoalState([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wire.GoalState{Incarnation: long, ContainerID: long, InstanceID: long}, got); diff != "" {
		t.Errorf("goal state (-want +got):\n%s", diff)
	}
}

// Whatever parses makes a report that says the same.
func FuzzParseGoalState(f *testing.F) {
	for _, tt := range goodDocuments {
		f.Add([]byte(tt.doc))
	}
	for _, tt := range badDocuments {
		f.Add([]byte(tt.doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		gs, err := wire.ParseGoalState(doc)
		if err != nil {
			return
		}
		var report struct {
			XMLName     xml.Name `xml:"Health"`
			Incarnation string   `xml:"GoalStateIncarnation"`
			ContainerID string   `xml:"Container>ContainerId"`
			InstanceID  string   `xml:"Container>RoleInstanceList>Role>InstanceId"`
		}
		if err := xml.Unmarshal(wire.Ready().XML(gs), &report); err != nil {
			t.Fatalf("report of %+v: %v", gs, err)
		}
		if got := (wire.GoalState{Incarnation: report.Incarnation, ContainerID: report.ContainerID, InstanceID: report.InstanceID}); got != gs {
			t.Errorf("report says %+v, goal state was %+v", got, gs)
		}
	})
}
