package wire_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

func ExampleReporter_Report() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	r := &wire.Reporter{
		Server:    wire.DefaultAddr, // or option 245's address, if CheckAddr takes it
		OnAttempt: func(a wire.Attempt) { log.Printf("attempt %d: %v", a.N, a.Err) },
	}
	out, err := r.Report(ctx, wire.Ready())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s knows that this machine is up, after %d attempts\n", out.Server, out.Attempts)
}
