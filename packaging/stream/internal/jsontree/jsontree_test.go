package jsontree_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/internal/jsontree"
)

// odd has what a reader that renders values again would lose.
const odd = "\t{ \"n\":1.50e+02, \"big\":123456789012345678901234567890,\r\n" +
	`"esc":"\u003c\/\u00e9<&>", "e\u0301\"":[ 1 , {"a":{ }} ], "t":true,"z":null , "o":{}` + "\n\n}\n \n"

func TestBytesAreKept(t *testing.T) {
	for _, in := range []string{odd, "{}", " {\n} ", `{"a":{"b":{"c":[]}}}`, "{\r\n\t\"a\":\t1\r\n}"} {
		d, err := jsontree.Parse([]byte(in))
		if err != nil {
			t.Errorf("Parse(%q): %v", in, err)
			continue
		}
		if diff := cmp.Diff(in, string(d.Bytes())); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
}

func TestSet(t *testing.T) {
	tests := []struct {
		name, in string
		path     string
		value    string
		want     string
	}{
		{"same value keeps its spelling", `{"a" : "\u0078"}`, "a", "x", `{"a" : "\u0078"}`},
		{"string", `{"a": "x", "b":1}`, "a", "y", `{"a": "y", "b":1}`},
		{"another type", `{"a": [1, 2], "b":1}`, "a", "y", `{"a": "y", "b":1}`},
		{"no escapes for HTML", `{}`, "a", "<&>", "{\n    \"a\": \"<&>\"\n}"},
		{"null counts as missing", `{"a":null}`, "a.b", "x", `{"a":{"b":"x"}}`},
		{"one line with blanks", `{"a": 1}`, "b", "x", `{"a": 1, "b": "x"}`},
		{"one line with blanks, at the end", `{"a": 1, "b": 2}`, "c.d", "x", `{"a": 1, "b": 2, "c": {"d": "x"}}`},
		{"one line without blanks", `{"a":1,"b":2}`, "c.d", "x", `{"a":1,"b":2,"c":{"d":"x"}}`},
		{"two blanks", "{\n  \"a\": {}\n}\n", "a.b.c", "x", "{\n  \"a\": {\n    \"b\": {\n      \"c\": \"x\"\n    }\n  }\n}\n"},
		{"tab and CRLF", "{\r\n\t\"a\": 1\r\n}\r\n", "b.c", "x", "{\r\n\t\"a\": 1,\r\n\t\"b\": {\r\n\t\t\"c\": \"x\"\r\n\t}\r\n}\r\n"},
		{"like its neighbour", "{\n \"a\": {\n        \"b\" : 1\n }\n}", "a.c", "x", "{\n \"a\": {\n        \"b\" : 1,\n        \"c\" : \"x\"\n }\n}"},
		{"white space before a comma", "{\"a\":1 ,\"b\":2 }", "c", "x", "{\"a\":1 ,\"b\":2,\"c\":\"x\" }"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := jsontree.Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Set(tt.value, strings.Split(tt.path, ".")...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(d.Bytes())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got, _ := d.Root().Get(strings.Split(tt.path, ".")...).Text(); got != tt.value {
				t.Errorf("Get after Set: %q, want %q", got, tt.value)
			}
		})
	}
}

func TestSetBelowAValue(t *testing.T) {
	d, err := jsontree.Parse([]byte(`{"a":{"b":[{}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = "a.b is an array: want an object"
	if err := d.Set("x", "a", "b", "c"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDelete(t *testing.T) {
	tests := []struct{ in, path, want string }{
		{`{"a":1,"b":2,"c":3}`, "a", `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "b", `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "c", `{"a":1,"b":2}`},
		{"{\n \"a\": 1,\n \"b\": 2\n}", "b", "{\n \"a\": 1\n}"},
		{"{\n \"a\": 1\n}", "a", "{}"},
		{`{"a":{"b":1}}`, "a.b", `{"a":{}}`},
		{`{"a":1 ,"b":2 }`, "b", `{"a":1  }`},
		{`{"a":1}`, "b", `{"a":1}`},
		{`{"a":1}`, "a.b.c", `{"a":1}`},
	}
	for _, tt := range tests {
		d, err := jsontree.Parse([]byte(tt.in))
		if err != nil {
			t.Fatal(err)
		}
		was := d.Delete(strings.Split(tt.path, ".")...)
		if got := string(d.Bytes()); got != tt.want || was != (tt.in != tt.want) {
			t.Errorf("%q without %s: %q, %v; want %q", tt.in, tt.path, got, was, tt.want)
		}
	}
}

// TestManyMembers: an object of any size is found in, changed and shortened
// like a small one.
func TestManyMembers(t *testing.T) {
	const n = 2_000
	var in strings.Builder
	in.WriteString(`{"first":0`)
	for i := range n {
		fmt.Fprintf(&in, `,"a%d":{"x":"%d"}`, i, i)
	}
	in.WriteString("}")
	d, err := jsontree.Parse([]byte(in.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n { // each looks through all
		if got, _ := d.Root().Get(fmt.Sprintf("a%d", i), "x").Text(); got != strconv.Itoa(i) {
			t.Fatalf("a%d is %q", i, got)
		}
	}
	if err := d.Set("new", "last"); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.Root().Get("last").Text(); got != "new" || d.Root().Get("absent") != nil {
		t.Errorf("last is %q", got)
	}
	if !d.Delete("first") || d.Root().Get("first") != nil {
		t.Error("first is still there")
	}
	want := "{" + strings.TrimPrefix(strings.TrimSuffix(in.String(), "}"), `{"first":0,`) + `,"last":"new"}`
	if string(d.Bytes()) != want {
		t.Error("something else changed")
	}
}

func TestNew(t *testing.T) {
	d := jsontree.New()
	for _, at := range []string{"b", "a"} {
		if err := d.Set("x", "o", at); err != nil {
			t.Fatal(err)
		}
	}
	const want = "{\n    \"o\": {\n        \"b\": \"x\",\n        \"a\": \"x\"\n    }\n}\n"
	if diff := cmp.Diff(want, string(d.Bytes())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	tests := []struct{ name, in, want string }{
		{"empty", "", "is empty: want a JSON object"},
		{"blank", " \n", "is empty: want a JSON object"},
		{"BOM", "\xef\xbb\xbf{}", "begins with a byte order mark: remove the first three bytes (tail -c +4)"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "line 1, column 1: byte 0xff is not UTF-8: convert the file to UTF-8 (iconv)"},
		{"Latin-1", "{\n \"a\": \"\xe9\"}", "line 2, column 8: byte 0xe9 is not UTF-8: convert the file to UTF-8 (iconv)"},
		{"array", "[]", "holds an array: want a JSON object"},
		{"number", "1", "holds a number: want a JSON object"},
		{"cut", `{"a":`, "line 1, column 5: not JSON: unexpected end of JSON input"},
		{"comment", "{\n// x\n}", "line 2, column 1: not JSON: invalid character '/' looking for beginning of object key string"},
		{"two documents", "{}\n{}", "line 2, column 1: not JSON: invalid character '{' after top-level value"},
		{"name twice", "{\n\"a\": 1,\n\"a\": 2}", `line 3, column 1: "a" is here twice in one object, and readers disagree which one counts: remove one`},
		{"name twice, spelled differently", `{"a": 1, "\u0061": 2}`, `line 1, column 10: "a" is here twice in one object, and readers disagree which one counts: remove one`},
		{"name twice, in an array", `{"x": [1, {"a": 1, "a": 2}]}`, `line 1, column 20: "a" is here twice in one object, and readers disagree which one counts: remove one`},
		{"deep objects", deep, "line 1, column 506: more than 100 levels deep: not a document of this kind"},
		{"deep arrays", `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}", "line 1, column 106: more than 100 levels deep: not a document of this kind"},
		{"very deep", strings.Repeat("[", 1<<20), "line 1, column 10001: not JSON: invalid character '[' exceeded max depth"},
		{"many values", `{"a":[` + strings.Repeat("0,", 100_000) + "0]}", "has more than 100000 values: not a document of this kind"},
		{"long", `{"a":"` + strings.Repeat("x", 16<<20) + `"}`, "is longer than 16 MiB: not a document of this kind"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := jsontree.Parse([]byte(tt.in))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}
