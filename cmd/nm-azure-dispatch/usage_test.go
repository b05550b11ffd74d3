package main_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every wrong argument gets one line that names it, its limit and the remedy.
func TestUsage(t *testing.T) {
	tests := []struct {
		args   string
		status int
		stderr string
	}{
		{"frobnicate", 2, `nm-azure-dispatch: unknown command "frobnicate"; see --help`},
		{"hook", 2, "nm-azure-dispatch: hook: 0 arguments, want 2: INTERFACE ACTION"},
		{"hook eth0 up now", 2, "nm-azure-dispatch: hook: 3 arguments, want 2: INTERFACE ACTION"},
		{"hook ../../etc/passwd up", 2, `nm: "../../etc/passwd" is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link`},
		{"hook a/b down", 2, `nm: "a/b" is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link`},
		{"check-in --server wire.example", 2, `nm-azure-dispatch: check-in: invalid value "wire.example" for flag --server: want the IPv4 address of one host, such as 168.63.129.16; see --help`},
		{"check-in --server fe80::1", 2, `nm-azure-dispatch: check-in: invalid value "fe80::1" for flag --server: want the IPv4 address of one host, such as 168.63.129.16; see --help`},
		{"check-in --server 224.0.0.1", 2, `nm-azure-dispatch: check-in: invalid value "224.0.0.1" for flag --server: want the IPv4 address of one host, such as 168.63.129.16; see --help`},
		{"check-in --timeout soon", 2, `nm-azure-dispatch: check-in: invalid value "soon" for flag --timeout: want a duration such as 90s or 20m, more than 0 and at most 24h; see --help`},
		{"check-in --timeout 0s", 2, `nm-azure-dispatch: check-in: invalid value "0s" for flag --timeout: want a duration such as 90s or 20m, more than 0 and at most 24h; see --help`},
		{"check-in --timeout 25h", 2, `nm-azure-dispatch: check-in: invalid value "25h" for flag --timeout: want a duration such as 90s or 20m, more than 0 and at most 24h; see --help`},
		{"check-in --force=yes", 2, `nm-azure-dispatch: check-in: invalid boolean value "yes" for --force: want true or false; see --help`},
		{"check-in now", 2, `nm-azure-dispatch: check-in: unexpected argument "now"; see --help`},
		{"check-in --now", 2, `nm-azure-dispatch: check-in: flag provided but not defined: --now; see --help`},
		{"version 2", 2, `nm-azure-dispatch: version: unexpected argument "2"; see --help`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			cmd := exec.Command(binary(), strings.Fields(tt.args)...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
			if got := stderr.String(); !strings.HasPrefix(got, tt.stderr) || strings.Count(got, "\n") != 1 {
				t.Errorf("stderr %q, want %q", got, tt.stderr)
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout %q", stdout.String())
			}
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	for args, want := range map[string]string{
		"version":               "nm-azure-dispatch 1.2.3\ngo1.",
		"--version":             "nm-azure-dispatch 1.2.3\ngo1.",
		"--help":                "usage: nm-azure-dispatch COMMAND",
		"check-in --help":       "usage: nm-azure-dispatch check-in [OPTION ...]\n",
		"doctor --help":         "usage: nm-azure-dispatch doctor [OPTION ...]\n",
		"hook --help":           "usage: nm-azure-dispatch hook INTERFACE ACTION\n",
		"report-failure --help": "usage: nm-azure-dispatch report-failure ",
		"status --help":         "usage: nm-azure-dispatch status [OPTION ...]\n",
		"version --help":        "usage: nm-azure-dispatch version\n",
	} {
		out, err := exec.Command(binary(), strings.Fields(args)...).Output()
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %v, %q", args, err, out)
		}
	}
	if err := exec.Command(binary()).Run(); err == nil {
		t.Error("no argument: status 0, want 2")
	}
}

// Each command's --help has no line longer than a terminal's, and the bash completion offers the same options.
func TestCompletion(t *testing.T) {
	source, err := os.ReadFile("../../packaging/completion/nm-azure-dispatch.bash")
	if err != nil {
		t.Fatal(err)
	}
	script := string(source) + `COMP_WORDS=("$@" ""); COMP_CWORD=$#; _nm_azure_dispatch; printf '%s\n' "${COMPREPLY[@]}"`
	complete := func(words ...string) []string {
		out, err := exec.Command("bash", append([]string{"-c", script}, words...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	for _, word := range complete("nm-azure-dispatch", "nm-azure-dispatch") {
		if strings.HasPrefix(word, "--") || word == "hook" {
			continue
		}
		help, err := exec.Command(binary(), word, "--help").Output()
		if err != nil {
			t.Errorf("%s --help: %v", word, err)
		}
		want := map[string]bool{"--help": true}
		for line := range strings.Lines(string(help)) {
			if len(strings.TrimRight(line, "\n")) > 80 {
				t.Errorf("%s --help: longer than 80 columns: %s", word, line)
			}
			if option, ok := strings.CutPrefix(line, "  --"); ok {
				want["--"+strings.Fields(option)[0]] = true
			}
		}
		got := map[string]bool{}
		for _, option := range complete("nm-azure-dispatch", "nm-azure-dispatch", word) {
			got[option] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: options of --help and completion differ (-help +completion):\n%s", word, diff)
		}
	}
}
