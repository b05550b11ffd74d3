package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/schematest"
)

// readOnly runs a command and returns what it prints, and its exit status.
func readOnly(t *testing.T, args string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command(binary(), strings.Fields(args)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		status = exit.ExitCode()
	}
	return out.String(), errs.String(), status
}

func TestReadOnlyUsage(t *testing.T) {
	for args, want := range map[string]string{
		"doctor --interface a/b": `nm-azure-dispatch: doctor: invalid value "a/b" for flag --interface: nm: "a/b" is not the name of an interface: want 1 to 15 bytes without slash, colon and white space; see ip link; see --help`,
		"doctor --name a..b":     `nm-azure-dispatch: doctor: invalid value "a..b" for flag --name: want a domain name; see --help`,
		"doctor --name=":         `nm-azure-dispatch: doctor: invalid value "" for flag --name: want a domain name; see --help`,
		"doctor eth0":            `nm-azure-dispatch: doctor: unexpected argument "eth0"; see --help`,
		"status --interface x":   `nm-azure-dispatch: status: flag provided but not defined: --interface; see --help`,
	} {
		stdout, stderr, status := readOnly(t, args)
		if stdout != "" || stderr != want+"\n" || status != 2 {
			t.Errorf("%s: status %d, stdout %q, stderr\n%swant\n%s", args, status, stdout, stderr, want)
		}
	}
}

func TestReadOnlyNotAzure(t *testing.T) {
	if is, why, _ := azure.Detect(os.DirFS("/")); is {
		t.Skipf("this machine is Azure: %s", why)
	}
	for args, want := range map[string]string{"status": "check-in   state     nothing to do: this machine is not Azure\n", "doctor": "platform       fail    this machine is not Azure: "} {
		stdout, stderr, status := readOnly(t, args)
		if status != 3 || stderr != "" || !strings.HasPrefix(stdout, want) {
			t.Errorf("%s: status %d, stderr %q, stdout %q", args, status, stderr, stdout)
		}
		if strings.Contains(stdout, "\x1b") {
			t.Errorf("%s: colours, and no terminal: %q", args, stdout)
		}
		stdout, _, status = readOnly(t, args+" --json")
		var v any
		if err := json.Unmarshal([]byte(stdout), &v); err != nil || status != 3 {
			t.Errorf("%s --json: status %d, %v: %q", args, status, err, stdout)
		}
		schematest.Check(t, "../../docs/schema/"+args+".json", v)
	}
}
