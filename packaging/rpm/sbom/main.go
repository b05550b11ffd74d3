// Sbom prints the software bill of materials of a package, in CycloneDX 1.5: sbom BINARY PACKAGE.rpm.
//
// BINARY is the program in the package. What Go's linker wrote into it is all that is listed, so the document says
// what is linked in, not what a go.mod names.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY PACKAGE.rpm")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %v\n", err)
		os.Exit(1)
	}
}

func run(binary, rpm string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	pkg, err := readPackage(rpm)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(describe(pkg, info))
}
