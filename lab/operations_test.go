package lab_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

const catalog = "../packaging/systemd/nm-azure-dispatch.catalog"

// operations has the guest in which the commands of a section of
// docs/operations.md are typed.
var operations = map[string]struct {
	config      func(*lab.Config)
	early, late func(*testing.T, *lab.Lab) // as in a doctorCase
}{
	"The VM stays in Creating": {
		early: firewall,
		late:  tried,
	},
	"The deployment fails with OSProvisioningTimedOut": {
		early: sh("systemctl stop nm-azure-checkin.timer nm-azure-checkin.service", "systemctl mask nm-azure-checkin.timer 2>&1",
			"systemctl disable NetworkManager-dispatcher.service 2>&1", "rm -rf /run/nm-azure-dispatch"),
		late: func(t *testing.T, l *lab.Lab) { connected(t, l, "eth0") },
	},
	"No name resolves after boot":            {late: settled("resolvectl dns eth0 ''")},
	"Names resolve, but by the wrong server": {late: settled("resolvectl dns eth0 203.0.113.1")},
	"It worked on the first boot only": {
		early: sh("ln -s /dev/null /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch"),
		late:  func(t *testing.T, l *lab.Lab) { connected(t, l, "eth0") },
	},
	"Two network interfaces": {
		config: wrongNIC,
		early: sh("nft add table ip f", "nft add chain ip f out '{ type filter hook output priority 0; }'",
			"nft add rule ip f out oifname eth1 ip daddr 168.63.129.16 drop"),
		late: func(t *testing.T, l *lab.Lab) {
			up(t, l, "eth0")
			up(t, l, "eth1")
		},
	},
	"A proxy answers": {
		early: playWire(lab.WireScript{GoalState: []lab.WireStep{page}, Health: []lab.WireStep{page}, Provisioning: []lab.WireStep{page}}),
		late:  tried,
	},
	"Custom DNS servers in the virtual network": {
		config: withLease(lab.AzureLease().WithAddrs(lab.OptNameservers, lab.Gateway, "10.77.0.9")),
		early:  func(t *testing.T, l *lab.Lab) { l.Cloud.SetDNSFault(lab.Gateway, lab.DNSRefuse) },
		late:   settled(),
	},
	"Azure Stack Hub": {
		config: func(c *lab.Config) {
			c.Cmdline = "ro ignition.platform.id=azurestack"
			withLease(lab.AzureLease().Without(lab.OptWireServer))(c)
		},
		late: settled(),
	},
	"The network does not work, and nobody can log in": {
		early: func(t *testing.T, l *lab.Lab) {
			sh("mkdir -p /var/lib/hyperv", "touch /var/lib/hyperv/.kvp_pool_1")(t, l)
			firewall(t, l)
		},
		late: tried,
	},
	"Journal entries": {late: settled()},
}

// page is a proxy's answer to everything.
var page = lab.WireStep{Times: -1, Body: new("<html><body>Access denied</body></html>")}

func firewall(t *testing.T, l *lab.Lab) {
	t.Helper()
	sh("nft add table ip filter", "nft add chain ip filter output '{ type filter hook output priority filter; policy accept; }'",
		"nft add rule ip filter output ip daddr 168.63.129.16 tcp dport 80 drop")(t, l)
}

// tried waits until an attempt to check in has failed.
func tried(t *testing.T, l *lab.Lab) {
	t.Helper()
	up(t, l, "eth0")
	eventually(t, l, "an attempt has failed", prints(l, `"state": "trying"`, "cat", "/run/nm-azure-dispatch/check-in.json"))
}

// settled waits until the guest has checked in, and then runs commands in it.
func settled(commands ...string) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		up(t, l, "eth0")
		eventually(t, l, "checked in", prints(l, `"state": "ready"`, "cat", "/run/nm-azure-dispatch/check-in.json"))
		sh(commands...)(t, l)
	}
}

// typed is a command of the document and what it prints.
type typed struct{ command, output string }

// Every command of docs/operations.md prints what the document says, in a guest
// with the fault that its section is about.
func TestOperations(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	ok(t, err)
	sections := console(string(text))
	for title := range operations {
		if _, found := sections[title]; !found {
			t.Errorf("no commands in a section %q", title)
		}
	}
	for title, commands := range sections {
		o, found := operations[title]
		if !found {
			t.Errorf("nothing tests the commands of section %q", title)
			continue
		}
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			cfg := quiet()
			cfg.Systemd = true
			cfg.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
			if o.config != nil {
				o.config(&cfg)
			}
			l := startProduct(t, lab.Suites[1], cfg)
			ok(t, l.Guest.Symlink("../libexec/nm-azure-dispatch", "/usr/bin/nm-azure-dispatch"))
			entries, err := os.ReadFile(catalog)
			ok(t, err)
			ok(t, l.Guest.WriteFile("/usr/lib/systemd/catalog/nm-azure-dispatch.catalog", string(entries), 0o644))
			run(t, l, "journalctl", "--update-catalog")
			if o.early != nil {
				o.early(t, l)
			}
			ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
			if o.late != nil {
				o.late(t, l)
			}
			for _, c := range commands {
				pattern := c.pattern()
				last := ""
				err := l.Eventually(t.Context(), c.command, func() error {
					last, _ = l.Guest.Run(context.WithoutCancel(t.Context()), "sh", "-c", strings.ReplaceAll(c.command, "sudo ", "")+" 2>&1")
					if !pattern.MatchString(trimmed(last)) {
						return fmt.Errorf("it prints %q", last)
					}
					return nil
				})
				if err != nil {
					t.Fatalf("$ %s\nprints\n%s\nwant\n%s", c.command, last, c.output)
				}
			}
		})
	}
}

// console returns the commands of each section of a Markdown text.
func console(text string) map[string][]typed {
	sections := map[string][]typed{}
	title, inside := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case !inside && strings.HasPrefix(line, "#"):
			title = strings.TrimLeft(line, "# ")
		case !inside:
		case strings.HasPrefix(line, "$ "):
			sections[title] = append(sections[title], typed{command: line[2:]})
		default:
			last := len(sections[title]) - 1
			sections[title][last].output += line + "\n"
		}
	}
	return sections
}

// pattern matches the output: a line of three dots stands for any lines, and
// three dots in a line for any text.
func (c typed) pattern() *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	for line := range strings.Lines(c.output) {
		if line == "...\n" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, ".*"))
	}
	b.WriteString("$")
	return regexp.MustCompile(b.String())
}

// trimmed ends with a newline, unless there is nothing, and has no blanks at
// the ends of lines.
func trimmed(s string) string {
	lines := slices.Collect(strings.Lines(s))
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t\n") + "\n"
	}
	return strings.Join(lines, "")
}
