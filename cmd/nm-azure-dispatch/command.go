package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
)

// version is set by the build, -X main.version.
var version = "unknown"

const usage = `usage: nm-azure-dispatch COMMAND [OPTION ...]

  check-in [--force] [--server ADDR] [--timeout DURATION]
            tell Azure that this VM is ready, unless that was done in this boot
  doctor [--json] [--interface INTERFACE] [--name NAME]
            look at everything between this machine and Azure, step by step, and
            say what to do where it fails; change nothing
  hook INTERFACE ACTION
            what NetworkManager's dispatcher runs: handle one of its events
  report-failure --reason TEXT [--timeout DURATION]
            tell Azure that provisioning failed, and why; refused after a
            check-in in the same boot
  status [--json]
            say how the check-in of this boot and the nameservers stand
  version   print the versions of the program, of Go and of the modules in it

Exit status: 0 done or nothing to do, 1 failed, 2 wrong usage. Of status and
doctor: 0 ready, or nothing fails; 1 not so; 3 this machine is not Azure.
See nm-azure-dispatch(8).
`

// command handles a call by a person or a unit.
func command(args []string) int {
	syscall.Umask(0o022) // the records are for all to read
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return exitUsage
	}
	switch name, rest := args[0], args[1:]; name {
	case "check-in":
		return checkIn(rest)
	case "doctor":
		return runDoctor(rest)
	case "report-failure":
		return reportFailure(rest)
	case "status":
		return printStatus(rest)
	case "version":
		return printVersion(rest)
	case "help", "-h", "-help", "--help":
		fmt.Print(usage)
		return exitDone
	case "hook":
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: hook: %d arguments, want 2: INTERFACE ACTION\n", len(rest))
		return exitUsage
	default:
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: unknown command %.64q, want one of those in --help; see --help\n", name)
		return exitUsage
	}
}

// parse reads a command's flags, which are all of its arguments, and returns
// whether to go on and else the exit status.
func parse(fs *flag.FlagSet, args []string) (bool, int) {
	fs.SetOutput(io.Discard) // one line on stderr is enough, the flag package writes the usage too
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(usage)
		return false, exitDone
	}
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %.64q", fs.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: %s: %v; see --help\n", fs.Name(), err)
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
