package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// The benchmarks run whole processes alternately, and report the median of each and
// its ratio to one before it: single times say little on a busy machine.

// contender is a process that is timed.
type contender struct {
	name string
	argv []string
	base bool // it and those behind it are compared with it; so is the first
}

// race runs each contender once a round and prints the medians. took times one
// run.
func race(b *testing.B, all []contender, took func(contender) time.Duration) {
	b.Helper()
	times := make([][]time.Duration, len(all))
	for b.Loop() {
		for i, c := range all {
			times[i] = append(times[i], took(c))
		}
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return d[len(d)/2].Seconds() * 1000
	}
	base := 0
	for i, c := range all {
		if c.base {
			base = i
		}
		fmt.Printf("%-44s %7.2f ms median, %6.2f ms least, %5.2f x %s\n",
			c.name, median(times[i]), times[i][0].Seconds()*1000, median(times[i])/median(times[base]), all[base].name)
	}
}

func start(b *testing.B, argv []string) *os.Process {
	b.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Files: []*os.File{null, null, null}})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkNoop times events that call for nothing, on a machine that is not
// Azure.
func BenchmarkNoop(b *testing.B) {
	dir := b.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			b.Fatal(err)
		}
		return name
	}
	floor := filepath.Join(dir, "c")
	if out, err := exec.Command("gcc", "-O2", "-static", "-o", floor, file("c.c", "int main(void) { return 0; }\n")).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile("../../packaging/rpm/90-nm-azure-dispatch")
	if err != nil {
		b.Fatal(err)
	}
	gate := file("gate", strings.ReplaceAll(string(text), "/usr/libexec/nm-azure-dispatch", binary()))
	race(b, []contender{
		{name: "static C, return 0", argv: []string{floor}},
		{name: "#!/bin/sh, exit 0", argv: []string{file("sh", "#!/bin/sh\nexit 0\n"), "eth0", "hostname"}},
		{name: "#!/bin/bash, exit 0", argv: []string{file("bash", "#!/bin/bash\nexit 0\n"), "eth0", "hostname"}},
		{name: "gate, an event that is not ours", argv: []string{gate, "eth0", "hostname"}},
		{name: "program, an event of ours, not Azure", argv: []string{binary(), "hook", "eth0", "up"}},
		{name: "gate and program, an event of ours, not Azure", argv: []string{gate, "eth0", "up"}},
	}, func(c contender) time.Duration {
		begin := time.Now()
		if _, err := start(b, c.argv).Wait(); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin)
	})
}

// reference does the two requests and no more: it knows the address, and finds
// the ids with sed.
const reference = `#!/bin/bash
gs=$(curl -s -H 'x-ms-version: 2012-11-30' 'http://168.63.129.16/machine/?comp=goalstate')
id() { sed -n "s/.*<$1>\(.*\)<\/$1>.*/\1/p" <<<"$gs" | head -n 1; }
curl -s -o /dev/null -H 'x-ms-version: 2012-11-30' -H 'x-ms-agent-name: reference' -H 'Content-Type: text/xml; charset=utf-8' \
	-d "<Health><GoalStateIncarnation>$(id Incarnation)</GoalStateIncarnation><Container><ContainerId>$(id ContainerId)</ContainerId><RoleInstanceList><Role><InstanceId>$(id InstanceId)</InstanceId><Health><State>Ready</State></Health></Role></RoleInstanceList></Container></Health>" \
	'http://168.63.129.16/machine/?comp=health'
`

// netHTTP does the same with Go's net/http.
const netHTTP = `package main

import ("encoding/xml"; "fmt"; "io"; "net/http"; "os"; "strings")

func do(method, path, body string) []byte {
	req, err := http.NewRequest(method, "http://168.63.129.16"+path, strings.NewReader(body))
	if err != nil { os.Exit(1) }
	req.Header.Set("x-ms-version", "2012-11-30")
	req.Header.Set("x-ms-agent-name", "reference")
	req.Header.Set("Content-Type", "text/xml; charset=utf-8")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 200 { os.Exit(1) }
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil { os.Exit(1) }
	return b
}

func main() {
	var gs struct {
		Incarnation string
		Container string ` + "`xml:\"Container>ContainerId\"`" + `
		Instance string ` + "`xml:\"Container>RoleInstanceList>RoleInstance>InstanceId\"`" + `
	}
	if xml.Unmarshal(do("GET", "/machine/?comp=goalstate", ""), &gs) != nil { os.Exit(1) }
	do("POST", "/machine/?comp=health", fmt.Sprintf("<Health><GoalStateIncarnation>%s</GoalStateIncarnation><Container><ContainerId>%s</ContainerId><RoleInstanceList><Role><InstanceId>%s</InstanceId><Health><State>Ready</State></Health></Role></RoleInstanceList></Container></Health>", gs.Incarnation, gs.Container, gs.Instance))
}
`

// buildNetHTTP builds it as the program is built.
func buildNetHTTP(b *testing.B, to string) {
	b.Helper()
	source := filepath.Join(b.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(netHTTP), 0o644); err != nil {
		b.Fatal(err)
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

var benchedInside sync.Once

// BenchmarkReady times from the start of the process until the WireServer holds
// the Ready. With --server the program does what the others do; as the hook it reads
// the lease from NetworkManager too.
func BenchmarkReady(b *testing.B) {
	viaNetHTTP := filepath.Join(filepath.Dir(binary()), "nethttp")
	if os.Getenv(envInside) == "" {
		benchedInside.Do(func() { // a benchmark function is called more than once
			buildNetHTTP(b, viaNetHTTP)
			insideBench(b)
		})
		return
	}
	m := &machine{t: b}
	m.setUp("ignition.platform.id=azure")
	daemons(b)
	server := m.wireServer(wiretest.Script{})
	m.journald()
	script := filepath.Join(b.TempDir(), "reference")
	m.must(os.WriteFile(script, []byte(reference), 0o755))
	race(b, []contender{
		{name: "bash, curl and sed, the two requests", argv: []string{script}},
		{name: "program, lease and check-in", argv: []string{binary(), "hook", "lo", "dhcp4-change"}},
		{name: "Go's net/http, the two requests", argv: []string{viaNetHTTP}, base: true},
		{name: "program, check-in --server", argv: []string{binary(), "check-in", "--server", "168.63.129.16"}},
	}, func(c contender) time.Duration {
		m.must(os.RemoveAll("/run/nm-azure-dispatch"))
		before := len(server.Requests())
		begin := time.Now()
		p := start(b, c.argv)
		for len(server.Requests()) < before+2 {
			time.Sleep(100 * time.Microsecond)
		}
		ready := time.Unix(0, server.Requests()[before+1].UnixNano).Sub(begin)
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
		return ready
	})
}
