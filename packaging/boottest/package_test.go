package boottest_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPackage holds what the package has in it, and what it wants of others, against what nm-dispatcher, SELinux and
// rpm-ostree demand: NetworkManager-dispatcher(8), docs/decisions/0009-selinux.md.
func TestPackage(t *testing.T) {
	tests := []struct{ name, query, want string }{
		{
			"files", `[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILENAMES} %{FILELINKTOS}\n]`, `
lrwxrwxrwx root root /usr/bin/nm-azure-dispatch ../libexec/nm-azure-dispatch
lrwxrwxrwx root root /usr/lib/NetworkManager/dispatcher.d/90-nm-azure-dispatch no-wait.d/90-nm-azure-dispatch
-rwxr-xr-x root root /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch
-rw-r--r-- root root /usr/lib/systemd/catalog/nm-azure-dispatch.catalog
-rw-r--r-- root root /usr/lib/systemd/system/nm-azure-checkin.service
-rw-r--r-- root root /usr/lib/systemd/system/nm-azure-checkin.timer
lrwxrwxrwx root root /usr/lib/systemd/system/systemd-networkd.service.wants/nm-azure-checkin.service ../nm-azure-checkin.service
lrwxrwxrwx root root /usr/lib/systemd/system/timers.target.wants/nm-azure-checkin.timer ../nm-azure-checkin.timer
-rwxr-xr-x root root /usr/libexec/nm-azure-dispatch
-rw-r--r-- root root /usr/share/bash-completion/completions/nm-azure-dispatch
-rw-r--r-- root root /usr/share/man/man8/nm-azure-dispatch.8.gz
`,
		},
		{"requires", `[%{REQUIRENEVRS}\n]`, `
(NetworkManager >= 1:1.20 or systemd-networkd)
/bin/sh
/bin/sh
/bin/sh
systemd
`},
		{"conflicts", `[%{CONFLICTNEVRS}\n]`, "\nWALinuxAgent\n"},
		{"suggests", `[%{SUGGESTNEVRS}\n]`, "\nsystemd-resolved\n"},
		// rpm-ostree runs these, and none of them may fail or write to /var.
		{"scriptlets of an image build", `%{PREIN}%{POSTIN}%{PRETRANS}%{POSTTRANS}[%{TRIGGERSCRIPTS}]`, "\n(none)(none)(none)(none)"},
	}
	if *rpm == "" {
		t.Skip("needs a package: make boot-test")
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := exec.Command("rpm", "-qp", "--qf", tt.query, *rpm).Output()
			if err != nil {
				t.Fatal(err)
			}
			got := "\n"
			for line := range strings.Lines(string(out)) {
				ours := !strings.HasPrefix(line, "rpmlib(") && !strings.Contains(line, "/share/doc/") && !strings.Contains(line, "/share/licenses/")
				if ours {
					got += strings.ReplaceAll(line, " \n", "\n")
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
