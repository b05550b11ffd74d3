// faults plays every fault between a machine and its WireServer to the real program, and prints how it fared.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/lab/faults"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/program"
)

func main() {
	faults.Main()
	only := flag.String("only", "", "only the cases whose name matches this regular expression")
	write := flag.String("write", "", "the Markdown file to put the tables into, between its markers")
	parallel := flag.Int("parallel", 12, "how many cases to play at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	red, err := run(ctx, *only, *write, *parallel)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
	}
	if err != nil || red > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, only, write string, parallel int) (red int, err error) {
	if err := faults.Available(); err != nil {
		return 0, err
	}
	name, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	cases := slices.DeleteFunc(faults.All(), func(c faults.Case) bool { return !name.MatchString(c.Name) })
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := program.Build(dir, "0.0.0")
	if err != nil {
		return 0, err
	}

	start := time.Now()
	outcomes := faults.PlayAll(ctx, path, cases, parallel, func(o faults.Outcome) {
		if len(o.Faults) == 0 {
			return
		}
		red++
		fmt.Fprintf(os.Stderr, "RED %s: %s\n    requests %v\n    %s\n", o.Name, strings.Join(o.Faults, "; "),
			o.Requests, strings.ReplaceAll(strings.TrimSpace(o.Stderr), "\n", "\n    "))
	})
	if write != "" {
		err = faults.WriteTables(write, outcomes)
	} else {
		fmt.Print(faults.Tables(outcomes))
	}
	fmt.Fprintf(os.Stderr, "%d cases in %v, %d red\n", len(outcomes), time.Since(start).Round(time.Second), red)
	return red, err
}
