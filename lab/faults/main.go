package faults

import (
	"encoding/json"
	"fmt"
	"os"
)

// role is what this executable is called when it plays a case.
const role = "nm-azure-faults-case"

// order is what the process that plays a case is told.
type order struct {
	Case    Case
	Program string
}

// Main returns at once unless this process was started by the package to play a case. Call it first thing in main or
// TestMain.
func Main() {
	if os.Args[0] != role {
		return
	}
	var o order
	err := json.NewDecoder(os.Stdin).Decode(&o)
	if err == nil {
		var r Result
		if r, err = o.play(); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(r)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", o.Case.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}
