package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
)

// version is set by the build, -X main.version.
var version = "unknown"

const (
	usageHead = "usage: nm-azure-dispatch COMMAND [OPTION ...]\n\n"
	usageTail = `
Exit status: 0 done or nothing to do, 1 failed, 2 wrong usage. Of status and
doctor: 0 ready, or no step failed; 1 otherwise; 3 this machine is not Azure.
nm-azure-dispatch COMMAND --help prints the options of a command.
See nm-azure-dispatch(8).
`
	optionColumns = 26 // of an option in a command's --help
)

// subcommand is a command for users or units.
type subcommand struct {
	name, args, summary string
	// define defines the options, and returns what runs the command once they are
	// parsed and returns the exit status. The error is printed.
	define func(*flag.FlagSet) func() (int, error)
}

// subcommands returns all commands, in the order of --help.
func subcommands() []subcommand {
	return []subcommand{
		{"check-in", "[OPTION ...]", "report to Azure that this VM is ready, once per boot", defineCheckIn},
		{"doctor", "[OPTION ...]", "run all checks and print a remedy for each failure; read-only", defineDoctor},
		{"hook", "INTERFACE ACTION", "handle an event of NetworkManager's dispatcher", defineHook},
		{"report-failure", "[OPTION ...]", "report to Azure that provisioning failed; needs a reason", defineReportFailure},
		{"status", "[OPTION ...]", "print this boot's check-in and each link's nameservers", defineStatus},
		{"version", "", "print the versions of the program, of Go and of its modules", defineVersion},
	}
}

// command runs a command and returns its exit status.
func command(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage())
		return exitUsage
	}
	name := args[0]
	switch name {
	case "help", "-h", "-help", "--help":
		fmt.Print(usage())
		return exitDone
	case "-version", "--version":
		name = "version"
	}
	for _, c := range subcommands() {
		if c.name == name {
			return c.run(args[1:])
		}
	}
	fmt.Fprintf(os.Stderr, "nm-azure-dispatch: unknown command %.64q; see --help\n", name)
	return exitUsage
}

// usage returns the text of --help.
func usage() string {
	text := usageHead
	for _, c := range subcommands() {
		text += fmt.Sprintf("  %-15s %s\n", c.name, c.summary)
	}
	return text + usageTail
}

// run parses the arguments, runs the command and returns its exit status.
func (c subcommand) run(args []string) int {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the flag package would print the usage too
	run := c.define(flags)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(c.help(flags))
		return exitDone
	}
	if err == nil && flags.NArg() > 0 && c.name != "hook" {
		err = fmt.Errorf("unexpected argument %.64q", flags.Arg(0))
	}
	if err != nil {
		// The flag package names a flag with one dash, and does not say what a boolean can be.
		text := strings.NewReplacer("for -", "for --", "flag -", "flag --", "defined: -", "defined: --", "argument: -", "argument: --",
			"parse error", "want true or false").Replace(err.Error())
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: %s: %s; see --help\n", c.name, text)
		return exitUsage
	}
	status, err := run()
	if err != nil {
		printf(os.Stderr, "nm-azure-dispatch: %s: %v\n", c.name, err)
	}
	return status
}

// help returns the text of --help for the command.
func (c subcommand) help(flags *flag.FlagSet) string {
	options := ""
	flags.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		options += fmt.Sprintf("  %-*s%s\n", optionColumns-2, "--"+f.Name+" "+value, term.Indent(text, optionColumns))
	})
	if options != "" {
		options = "\n" + options
	}
	return strings.TrimRight("usage: nm-azure-dispatch "+c.name+" "+c.args, " ") + "\n\n" + c.summary + "\n" + options
}

// defineHook defines hook for --help and a wrong number of arguments; main handles the
// right one.
func defineHook(flags *flag.FlagSet) func() (int, error) {
	return func() (int, error) {
		return exitUsage, fmt.Errorf("%d arguments, want 2: INTERFACE ACTION", flags.NArg())
	}
}

func defineVersion(*flag.FlagSet) func() (int, error) {
	return func() (int, error) {
		fmt.Printf("nm-azure-dispatch %s\n%s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, m := range info.Deps {
				fmt.Printf("%s %s\n", m.Path, m.Version)
			}
		}
		return exitDone, nil
	}
}
