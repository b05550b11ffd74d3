package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"azure-stream": main})
}

func TestScripts(t *testing.T) { testscript.Run(t, params("testdata/script")) }

// params runs scripts in a folder that holds the documents of the package's
// testdata, with a command "status N program args..." for exact exit statuses.
func params(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return copyTestdata(env.WorkDir)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "qemu-img":
				_, err := exec.LookPath("qemu-img")
				if err != nil && os.Getenv("CI") != "" {
					return false, errors.New("CI needs qemu-img (qemu-utils)")
				}
				return err == nil, nil
			}
			return false, errors.New("unknown condition")
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"status": status},
	}
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg {
		ts.Fatalf("usage: status N program args...")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = -1
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			got = e.ExitCode()
		}
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func copyTestdata(to string) error {
	files, err := filepath.Glob("../../testdata/*.*")
	if err != nil {
		return err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// TestHelpNamesEveryFlag: each flag that a command takes is in its help.
func TestHelpNamesEveryFlag(t *testing.T) {
	helps := map[string]string{
		"add":          "--meta --marketplace --stream --base-url --no-signatures",
		"lookup":       "--arch --generation --confidential --plan --kind --platform --all --marketplace --os-stream --json",
		"verify":       "--vhd --arch --os-stream",
		"azure-stream": "add lookup verify schema version",
	}
	for command, names := range helps {
		text := help(command)
		for name := range strings.FieldsSeq(names) {
			if !strings.Contains(text, "\n  "+name+" ") && !strings.Contains(text, "\n  "+name+"\n") && !strings.Contains(text, "azure-stream "+name) {
				t.Errorf("no %s in:\n%s", name, text)
			}
		}
		for line := range strings.Lines(text) {
			if len(line) > 95 {
				t.Errorf("a line of %d: %s", len(line), line)
			}
		}
	}
}
