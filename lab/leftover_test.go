package lab_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// holdEnv makes this program hold a lab until its standard input ends, or until it is killed.
const holdEnv = "NM_AZURE_LAB_HOLD"

// held is what the program that holds a lab tells of it: the first processes of its machines.
type held struct{ Cloud, Guest int }

func hold(mode string) {
	l, err := lab.New(context.Background(), lab.Config{Systemd: mode == "systemd"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(held{l.Cloud.PID(), l.Guest.PID()})
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := l.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	needLab(t)
	before := host(t)
	for _, mode := range []string{"plain", "systemd"} {
		for _, sig := range []syscall.Signal{0, unix.SIGINT, unix.SIGKILL} {
			t.Run(fmt.Sprintf("%s, signal %d", mode, sig), func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
				cmd.Env, cmd.Stderr = append(os.Environ(), holdEnv+"="+mode), os.Stderr
				stdin, err := cmd.StdinPipe()
				ok(t, err)
				stdout, err := cmd.StdoutPipe()
				ok(t, err)
				ok(t, cmd.Start())
				var h held
				line, err := bufio.NewReader(stdout).ReadBytes('\n')
				ok(t, err)
				ok(t, json.Unmarshal(line, &h))
				traces := traces(t, h)
				if sig != 0 {
					ok(t, cmd.Process.Signal(sig))
				}
				ok(t, stdin.Close())
				if err := cmd.Wait(); sig == 0 {
					ok(t, err) // Close has waited
					ok(t, traces.left())
				}
				left := traces.left()
				for wait := time.Now().Add(10 * time.Second); left != nil && time.Now().Before(wait); left = traces.left() {
					time.Sleep(20 * time.Millisecond)
				}
				ok(t, left)
			})
		}
	}
	if d := cmp.Diff(before, host(t)); d != "" {
		t.Errorf("the host (-before +after):\n%s", d)
	}
}

// trace is where to look for what a lab was.
type trace struct {
	namespaces []os.FileInfo // of files that are kept open, so that no other namespace gets the same number
	cgroup     string        // of a guest with systemd
}

func traces(t *testing.T, h held) trace {
	t.Helper()
	var tr trace
	for _, pid := range []int{h.Cloud, h.Guest} {
		for _, kind := range []string{"net", "mnt", "uts", "ipc"} { // pid: a zombie has one until the host reaps it
			f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
			ok(t, err)
			t.Cleanup(func() { _ = f.Close() })
			info, err := f.Stat()
			ok(t, err)
			tr.namespaces = append(tr.namespaces, info)
		}
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", h.Guest))
	ok(t, err)
	if _, after, found := strings.Cut(string(b), "0::/nm-azure-lab-"); found {
		name, _, _ := strings.Cut(after, "/")
		tr.cgroup = "nm-azure-lab-" + strings.TrimSpace(name)
	}
	return tr
}

// left tells what is still there.
func (tr trace) left() error {
	links, err := filepath.Glob("/proc/[0-9]*/ns/*")
	for _, link := range links {
		ns, err := os.Stat(link)
		for _, ours := range tr.namespaces {
			if err == nil && os.SameFile(ns, ours) {
				return fmt.Errorf("%s is the lab's", link)
			}
		}
	}
	if tr.cgroup == "" {
		return err
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, c := range commands {
		if b, _ := os.ReadFile(c); strings.Contains(string(b), tr.cgroup) {
			return fmt.Errorf("%s is %q", c, b)
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		if dirs, _ := filepath.Glob(pattern + tr.cgroup); len(dirs) > 0 {
			return fmt.Errorf("cgroup %s is there", dirs[0])
		}
	}
	return err
}

// host is what a lab might change outside of it. Others may do their work there meanwhile.
func host(t *testing.T) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	ok(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " overlay ") || strings.Contains(line, "lab") {
			found["mounts"] = append(found["mounts"], line)
		}
	}
	links, err := net.Interfaces()
	ok(t, err)
	for _, l := range links {
		if l.Name == "br0" || strings.HasPrefix(l.Name, "eth") || strings.HasPrefix(l.Name, "c-") {
			found["links"] = append(found["links"], l.Name)
		}
	}
	for _, setting := range []string{"kernel/hostname", "fs/protected_regular", "net/ipv4/ip_forward"} {
		b, err := os.ReadFile("/proc/sys/" + setting)
		ok(t, err)
		found["settings"] = append(found["settings"], setting+" "+string(b))
	}
	return found
}
