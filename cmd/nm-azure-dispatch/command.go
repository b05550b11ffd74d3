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
	"syscall"
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
)

// subcommand is a command for users or units.
type subcommand struct {
	name, args string
	summary    string // one line
	options    string // one or more lines per option, "" if there are none
	run        func([]string) int
}

// subcommands returns all commands, in the order of --help.
func subcommands() []subcommand {
	return []subcommand{
		{
			"check-in", "[--force] [--server ADDR] [--timeout DURATION]", "report to Azure that this VM is ready, once per boot",
			"  --force             report Ready even if this boot has a report already\n" +
				"  --server ADDR       the WireServer's IPv4 address; no lease is read, and the\n" +
				"                      platform is not checked\n" +
				"  --timeout DURATION  when to give up, such as 90s or 20m;\n" +
				"                      by default never\n", checkIn,
		},
		{
			"doctor", "[--json] [--interface INTERFACE] [--name NAME]", "run all checks and print a remedy for each failure; read-only",
			"  --json                 print JSON, docs/schema/doctor.json\n" +
				"  --interface INTERFACE  the interface to check, by default that of the\n" +
				"                         default route\n" +
				"  --name NAME            the name to resolve\n", runDoctor,
		},
		{"hook", "INTERFACE ACTION", "handle an event of NetworkManager's dispatcher", "", wrongHook},
		{
			"report-failure", "--reason TEXT | --failed-units [OPTION]", "report to Azure that provisioning failed",
			"  --reason TEXT       the reason that Azure shows, at most 512 characters\n" +
				"  --failed-units      the reason is the failed units and what they logged last\n" +
				"  --timeout DURATION  when to give up, such as 90s or 20m\n", reportFailure,
		},
		{
			"status", "[--json]", "print this boot's check-in and each link's nameservers",
			"  --json  print JSON, docs/schema/status.json\n", printStatus,
		},
		{"version", "", "print the versions of the program, of Go and of its modules", "", printVersion},
	}
}

// usage returns the text of --help.
func usage() string {
	var b strings.Builder
	b.WriteString(usageHead)
	for _, c := range subcommands() {
		fmt.Fprintf(&b, "  %-15s %s\n", c.name, c.summary)
	}
	b.WriteString(usageTail)
	return b.String()
}

// help returns the text of --help for the command.
func (c subcommand) help() string {
	text := strings.TrimRight("usage: nm-azure-dispatch "+c.name+" "+c.args, " ") + "\n\n" + c.summary + "\n"
	if c.options != "" {
		text += "\n" + c.options
	}
	return text
}

// command runs a command and returns its exit status.
func command(args []string) int {
	syscall.Umask(0o022) // every user may read the records
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage())
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		fmt.Print(usage())
		return exitDone
	case "-version", "--version":
		return printVersion(args[1:])
	}
	for _, c := range subcommands() {
		if c.name == args[0] {
			return c.run(args[1:])
		}
	}
	fmt.Fprintf(os.Stderr, "nm-azure-dispatch: unknown command %.64q; see --help\n", args[0])
	return exitUsage
}

// wrongHook reports a wrong number of arguments of hook; main handles the right one.
func wrongHook(args []string) int {
	if len(args) == 1 && strings.HasPrefix(args[0], "-") {
		_, status := parse(flag.NewFlagSet("hook", flag.ContinueOnError), args)
		return status
	}
	fmt.Fprintf(os.Stderr, "nm-azure-dispatch: hook: %d arguments, want 2: INTERFACE ACTION\n", len(args))
	return exitUsage
}

// parse parses the arguments of a command, which are all flags. It returns whether
// to run the command, and the exit status if not.
func parse(fs *flag.FlagSet, args []string) (bool, int) {
	fs.SetOutput(io.Discard) // the flag package would write the usage too
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		for _, c := range subcommands() {
			if c.name == fs.Name() {
				fmt.Print(c.help())
			}
		}
		return false, exitDone
	}
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %.64q", fs.Arg(0))
	}
	if err != nil {
		// The flag package names a flag with one dash, the documentation with two.
		text := strings.NewReplacer("flag -", "flag --", "defined: -", "defined: --", "argument: -", "argument: --").Replace(err.Error())
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: %s: %s; see --help\n", fs.Name(), text)
		return false, exitUsage
	}
	return true, exitDone
}

func printVersion(args []string) int {
	if ok, status := parse(flag.NewFlagSet("version", flag.ContinueOnError), args); !ok {
		return status
	}
	fmt.Printf("nm-azure-dispatch %s\n%s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			fmt.Printf("%s %s\n", m.Path, m.Version)
		}
	}
	return exitDone
}
