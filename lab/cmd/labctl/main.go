// Labctl prepares the Debian trees of the lab: labctl tree [SUITE...].
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != "tree" {
		fmt.Fprintln(os.Stderr, "usage: labctl tree [SUITE...]    make the Debian trees that are not there yet, print their paths")
		os.Exit(2)
	}
	suites := os.Args[2:]
	if len(suites) == 0 {
		suites = lab.Suites
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	for _, suite := range suites {
		path, err := lab.Tree(ctx, suite)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(path)
	}
}
