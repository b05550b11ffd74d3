// Command azure-stream is for builders of OS images: it writes the
// image's Azure artifacts into CoreOS stream metadata, looks them up there,
// and says before an upload whether Azure will take the disk.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

// The exit statuses, which scripts may rely on.
const (
	exitOK    = 0
	exitWrong = 1 // something is wrong, or not there
	exitUsage = 2
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := run(out, os.Args[1:])
	if e := out.Flush(); err == nil {
		err = e
	}
	switch e, isUsage := errors.AsType[usageError](err); {
	case err == nil:
		os.Exit(exitOK)
	case isUsage:
		fmt.Fprintf(os.Stderr, "azure-stream: %s; azure-stream %s says what there is\n", e.text, strings.TrimSpace(e.command+" --help"))
		os.Exit(exitUsage)
	case !errors.Is(err, errWrong):
		fmt.Fprintf(os.Stderr, "azure-stream: %s\n", printable(err.Error()))
	}
	os.Exit(exitWrong)
}

// errWrong is what a command returns that has already said what is wrong.
var errWrong = errors.New("wrong")

// A usageError is a command line that makes no sense.
type usageError struct{ command, text string }

func (e usageError) Error() string { return e.text }

func run(out *bufio.Writer, args []string) error {
	if len(args) == 0 {
		return usageError{text: "no command"}
	}
	switch name, args := args[0], args[1:]; name {
	case "add":
		return add(out, args)
	case "lookup":
		return lookup(out, args)
	case "verify":
		return verify(out, args)
	case "schema":
		return plain(out, name, args, stream.Schema)
	case "version", "--version", "-version":
		return plain(out, "version", args, "azure-stream "+version()+"\n")
	case "help", "--help", "-help", "-h":
		return plain(out, "azure-stream", args, help("azure-stream"))
	default:
		return usageError{text: fmt.Sprintf("no command %q", name)}
	}
}

// plain is a command without arguments that prints a text.
func plain(out io.Writer, name string, args []string, text string) error {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	rest, err := parse(fs, out, args)
	if err != nil || rest == nil {
		return err
	}
	if len(rest) > 0 {
		return usageError{name, fmt.Sprintf("%s takes no argument, not %q", name, rest[0])}
	}
	_, err = io.WriteString(out, text)
	return err
}

// parse reads flags wherever they stand and returns the other arguments. If
// --help is among the flags it prints the help and returns nil.
func parse(fs *flag.FlagSet, out io.Writer, args []string) ([]string, error) {
	fs.SetOutput(io.Discard)
	rest := []string{}
	for {
		switch err := fs.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			_, err := io.WriteString(out, help(fs.Name()))
			return nil, err
		case err != nil:
			return nil, usageError{fs.Name(), strings.NewReplacer("defined: -", "defined: --", "argument: -", "argument: --", "for flag -", "for flag --", "for -", "for --").Replace(err.Error())}
		}
		read := len(args) - fs.NArg()
		if read > 0 && args[read-1] == "--" {
			return append(rest, fs.Args()...), nil
		}
		if fs.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, fs.Arg(0)), fs.Args()[1:]
	}
}

// version is set by the linker: -X main.release=1.2.3.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && release == "" {
		return info.Main.Version
	}
	return cmp.Or(release, "(devel)")
}

var release string
