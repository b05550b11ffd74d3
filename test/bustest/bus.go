// Package bustest is test support: a private dbus-daemon, with NetworkManager's
// and resolved's objects exported on it as far as this program asks for them.
// The far ends are fakes; the bus, its error names and the marshalling are real.
package bustest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

// config lets everybody do everything. Receiving must be allowed too: without
// it the reply to Hello is dropped and the client waits for good.
const config = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=SOCKET</listen>
  <servicedir>SERVICES</servicedir>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow receive_sender="*" eavesdrop="true"/>
  </policy>
</busconfig>
`

// Bus is a private dbus-daemon.
type Bus struct {
	// Address is what DBUS_SYSTEM_BUS_ADDRESS must be to use it.
	Address string

	daemon   *exec.Cmd
	conns    []*dbus.Conn
	services string // the directory of its service files
}

// New starts a bus and makes it the test process's system bus. It ends with the test. Without dbus-daemon the test is
// skipped, and fails where CI is set.
func New(t *testing.T) *Bus {
	t.Helper()
	if _, err := exec.LookPath("dbus-daemon"); err != nil && os.Getenv("CI") == "" {
		t.Skip("dbus-daemon is not installed: apt-get install dbus-daemon")
	}
	dir, err := os.MkdirTemp("", "bus") // a socket's path holds 107 bytes, t.TempDir's can be longer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b, err := Start(filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", b.Address)
	return b
}

// Start starts a dbus-daemon that listens on a socket. Its configuration is a file beside that.
func Start(socket string) (*Bus, error) {
	file, services := socket+".conf", filepath.Dir(socket)
	if err := os.WriteFile(file, []byte(strings.NewReplacer("SOCKET", socket, "SERVICES", services).Replace(config)), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command("dbus-daemon", "--config-file="+file, "--nofork", "--nopidfile", "--print-address=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b := &Bus{daemon: cmd, services: services}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("bustest: dbus-daemon did not start: %w", err)
	}
	b.Address = strings.TrimSpace(line)
	return b, nil
}

// Activatable makes the bus start a service for calls to this name, without success: they fail with Spawn.ChildExited.
func (b *Bus) Activatable(t testing.TB, name string) {
	t.Helper()
	service := "[D-BUS Service]\nName=" + name + "\nExec=/bin/false\n"
	if err := os.WriteFile(filepath.Join(b.services, name+".service"), []byte(service), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := b.Connect(t).BusObject().Call("org.freedesktop.DBus.ReloadConfig", 0).Err; err != nil {
		t.Fatal(err)
	}
}

// Close ends the bus and all connections that were made through it.
func (b *Bus) Close() {
	for _, c := range b.conns {
		_ = c.Close()
	}
	_ = b.daemon.Process.Kill()
	_ = b.daemon.Wait()
}

// connect returns a private connection that ends with the bus.
func (b *Bus) connect() (*dbus.Conn, error) {
	conn, err := dbus.Connect(b.Address)
	if err != nil {
		return nil, err
	}
	b.conns = append(b.conns, conn)
	return conn, nil
}

// own takes a name on the bus.
func own(conn *dbus.Conn, name string) error {
	reply, err := conn.RequestName(name, dbus.NameFlagDoNotQueue)
	if err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		return fmt.Errorf("bustest: own %s: reply %v: %w", name, reply, err)
	}
	return nil
}

// Connect returns a private connection that ends with the bus.
func (b *Bus) Connect(t testing.TB) *dbus.Conn {
	t.Helper()
	conn, err := b.connect()
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// Monitor counts what goes over the bus from now on. The function that it
// returns gives the method calls so far, "INTERFACE.MEMBER", that were sent by
// anybody but this process's own connections named in except.
func (b *Bus) Monitor(t testing.TB, except ...*dbus.Conn) func() []string {
	t.Helper()
	conn := b.Connect(t)
	call := conn.BusObject().Call("org.freedesktop.DBus.Monitoring.BecomeMonitor", 0, []string{"type='method_call'"}, uint32(0))
	if call.Err != nil {
		t.Fatal(call.Err)
	}
	messages := make(chan *dbus.Message, 4096)
	conn.Eavesdrop(messages)
	var calls []string
	return func() []string {
		for {
			select {
			case m := <-messages:
				sender, _ := m.Headers[dbus.FieldSender].Value().(string)
				ours := slices.ContainsFunc(except, func(c *dbus.Conn) bool { return c.Names()[0] == sender })
				if m.Type == dbus.TypeMethodCall && !ours {
					iface, _ := m.Headers[dbus.FieldInterface].Value().(string)
					member, _ := m.Headers[dbus.FieldMember].Value().(string)
					calls = append(calls, iface+"."+member)
				}
			default:
				return calls
			}
		}
	}
}
