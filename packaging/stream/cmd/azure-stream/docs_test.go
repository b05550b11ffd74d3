package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocs runs what stands in the "console" blocks of docs/images.md, one
// after the other in one folder, and compares the output. "..." stands for
// what differs from run to run.
func TestDocs(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI needs qemu-img (qemu-utils): %v", err)
		}
		t.Skipf("no qemu-img (qemu-utils): %v", err)
	}
	page, err := os.ReadFile("../../../../docs/images.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for from, to := range map[string]string{"meta-rhcos.json": "meta.json", "rhcos.json": "stream.json"} {
		b, err := os.ReadFile(filepath.Join("../../testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "PATH="+build(t)+":"+os.Getenv("PATH"))

	ran := 0
	for _, step := range steps(string(page)) {
		ran++
		cmd := exec.CommandContext(t.Context(), "sh", "-c", step.command)
		cmd.Dir, cmd.Env = dir, env
		out, _ := cmd.CombinedOutput() // a status other than 0 is in the output, if it matters
		want := "^" + strings.ReplaceAll(regexp.QuoteMeta(step.output), `\.\.\.`, ".*") + "$"
		if !regexp.MustCompile(want).MatchString(string(out)) {
			t.Errorf("$ %s\ngot:\n%s\nthe page says:\n%s", step.command, out, step.output)
		}
	}
	if ran < 8 {
		t.Errorf("only %d commands found", ran)
	}
}

// TestAzureCLI gives each command of docs/images.md that begins with az to the
// Azure CLI, without an account: it checks the arguments, and then asks for a
// login.
func TestAzureCLI(t *testing.T) {
	if os.Getenv("AZURE_CLI_TEST") == "" {
		t.Skip("takes seconds for each command: make azure-cli-test")
	}
	if _, err := exec.LookPath("az"); err != nil {
		t.Fatalf("no Azure CLI (azure-cli): %v", err)
	}
	page, err := os.ReadFile("../../../../docs/images.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"disk.vhd", "config.ign"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := regexp.MustCompile(`(?m)^    (\w+=\$\()?(az .*)$`).FindAllStringSubmatch(string(page), -1)
	if len(lines) < 20 {
		t.Errorf("only %d commands found", len(lines))
	}
	login := regexp.MustCompile(`[Pp]lease run .?az login`)
	for _, line := range lines {
		line := line[1] + line[2] + strings.Repeat("; exit 1", min(len(line[1]), 1))
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "AZURE_CONFIG_DIR="+dir, "image=/subscriptions/x", "disk=/subscriptions/x")
		if out, err := cmd.CombinedOutput(); err == nil || !login.Match(out) {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

type step struct{ command, output string }

// steps returns the commands of a page with the output below each.
func steps(page string) []step {
	var all []step
	in := false
	for line := range strings.Lines(page) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			in = strings.TrimSpace(line) == "```console"
		case in && isCommand:
			all = append(all, step{command: strings.TrimSpace(command)})
		case in && strings.HasSuffix(all[len(all)-1].command, `\`):
			all[len(all)-1].command += "\n" + strings.TrimSpace(line)
		case in:
			all[len(all)-1].output += line
		}
	}
	return all
}
