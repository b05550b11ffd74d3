package main_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/program"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// envInside marks the test process that runs in namespaces of its own.
const envInside = "NM_AZURE_TEST_INSIDE"

// binDir is where the program under test is built.
var binDir string

// binary is the program under test, built as `make build` does. It is built in a test, not before them all: see
// program.Build.
var binary = sync.OnceValue(func() string {
	if inside := os.Getenv(envInside); inside != "" {
		return inside
	}
	path, err := program.Build(binDir, "1.2.3")
	if err != nil {
		panic(err)
	}
	return path
})

func TestMain(m *testing.M) {
	if os.Getenv(envInside) != "" {
		os.Exit(m.Run())
	}
	var err error
	if binDir, err = os.MkdirTemp("", "bin"); err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(binDir)
	os.Exit(status)
}

// machine is the inside of namespaces of the test's own: a network with only a
// loopback device, an empty /run, a kernel command line.
type machine struct {
	t testing.TB
}

// inside runs f in new network and mount namespaces, where the machine is an
// Azure VM. It runs the calling test once more as another process there.
func inside(t *testing.T, f func(t *testing.T, m *machine)) {
	t.Helper()
	if os.Getenv(envInside) != "" {
		m := &machine{t: t}
		m.setUp("ignition.platform.id=azure")
		f(t, m)
		return
	}
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("CI must run this as root")
		}
		t.Skip("only root can make namespaces")
	}
	cmd := again("-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("inside: %v\n%s", err, out)
	}
	if testing.Verbose() {
		t.Logf("inside:\n%s", out)
	}
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skipf("inside:\n%s", out)
	}
}

// beside lets a test that mostly waits run beside others of its kind.
func beside(t *testing.T) {
	if os.Getenv(envInside) == "" {
		t.Parallel()
	}
}

// insideBench is inside for a benchmark, which continues there by itself.
func insideBench(b *testing.B) {
	b.Helper()
	cmd := again("-test.run=^$", "-test.bench=^"+b.Name()+"$", "-test.benchtime="+flag.Lookup("test.benchtime").Value.String())
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
}

// again is this test program in new namespaces.
func again(args ...string) *exec.Cmd {
	cmd := namespace.Command(context.Background(), os.Args[0], args...)
	cmd.Env = append(cmd.Env, envInside+"="+binary(), "CI="+os.Getenv("CI"), "TMPDIR="+os.TempDir(),
		"UPDATE_GOLDEN="+os.Getenv("UPDATE_GOLDEN"))
	return cmd
}

func (m *machine) setUp(cmdline string) {
	m.t.Helper()
	m.must(namespace.SetUp(cmdline))
	m.must(namespace.IP("link set lo up", "addr add 168.63.129.16/32 dev lo", "addr add 10.0.0.4/32 dev lo", "route add default dev lo", "route add unreachable 10.0.0.2/32"))
}

// cmdline makes up the kernel command line until the test ends.
func (m *machine) cmdline(s string) {
	m.t.Helper()
	m.must(namespace.Cmdline(s))
	m.t.Cleanup(func() { m.must(syscall.Unmount("/proc/cmdline", syscall.MNT_DETACH)) })
}

func (m *machine) command(name string, args ...string) {
	m.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		m.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// wireServer serves a script at 168.63.129.16:80.
func (m *machine) wireServer(script wiretest.Script) *wiretest.Server {
	m.t.Helper()
	l, err := net.Listen("tcp", "168.63.129.16:80")
	m.must(err)
	s := wiretest.New(script)
	done := make(chan error, 1)
	go func() { done <- s.Serve(m.t.Context(), l) }()
	m.t.Cleanup(func() {
		if err := <-done; err != nil {
			m.t.Error(err)
		}
	})
	return s
}

// run runs the program as the dispatcher does: an environment made from
// nothing, no standard input.
func (m *machine) run(args []string, env ...string) (status int, stdout, stderr string) {
	m.t.Helper()
	cmd := exec.Command(binary(), args...)
	cmd.Env, cmd.Dir = env, "/"
	if env == nil {
		cmd.Env = []string{}
	}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		m.t.Fatal(err)
	} else if ok {
		return exit.ExitCode(), out.String(), errOut.String()
	}
	return 0, out.String(), errOut.String()
}

// event runs the program for one of the dispatcher's events.
func (m *machine) event(iface, action string, env ...string) (status int, stderr string) {
	m.t.Helper()
	status, stdout, stderr := m.run([]string{iface, action}, append(env, "NM_DISPATCHER_ACTION="+action)...)
	if stdout != "" {
		m.t.Errorf("%s %s: stdout %q, want silence", iface, action, stdout)
	}
	return status, stderr
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// journald reads what is sent to the journal's socket. It must read all the
// time: the kernel queues only a few datagrams, then the sender blocks.
type journald struct {
	conn    *net.UnixConn
	mu      sync.Mutex
	entries []string
}

func (m *machine) journald() *journald {
	m.t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "/run/systemd/journal/socket", Net: "unixgram"})
	m.must(err)
	j := &journald{conn: conn}
	m.t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			j.mu.Lock()
			j.entries = append(j.entries, string(buf[:n]))
			j.mu.Unlock()
		}
	}()
	return j
}

// taken returns the entries so far and forgets them. What a process that has
// ended had sent is in the socket's queue by then.
func (j *journald) taken(t *testing.T) string {
	t.Helper()
	marker := "MARKER=" + time.Now().String()
	c, err := net.Dial("unixgram", "/run/systemd/journal/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, marker); err != nil {
		t.Fatal(err)
	}
	for {
		j.mu.Lock()
		if n := len(j.entries); n > 0 && j.entries[n-1] == marker {
			got := strings.Join(j.entries[:n-1], "\n")
			j.entries = nil
			j.mu.Unlock()
			return got
		}
		j.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}
