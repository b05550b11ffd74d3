package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

func lookup(out io.Writer, args []string) error {
	fs := flag.NewFlagSet("lookup", flag.ContinueOnError)
	var q stream.Query
	fs.StringVar(&q.Arch, "arch", thisArch(), "")
	kind := fs.String("kind", "", "")
	fs.StringVar(&q.Platform, "platform", stream.Platforms()[0], "")
	asJSON := fs.Bool("json", false, "")
	rest, err := parse(fs, out, args, lookupHelp)
	q.Kind = stream.Kind(*kind)
	switch {
	case err != nil || rest == nil:
		return err
	case len(rest) != 1:
		return usageError{"lookup", fmt.Sprintf("lookup takes one stream.json, and not %d", len(rest))}
	case q.Arch == "":
		return usageError{"lookup", "--arch is empty"}
	case *kind != "" && !slices.Contains(stream.Kinds(), q.Kind):
		return usageError{"lookup", fmt.Sprintf("no --kind %q", *kind)}
	case !slices.Contains(stream.Platforms(), q.Platform):
		return usageError{"lookup", fmt.Sprintf("no --platform %q", q.Platform)}
	}

	doc, err := readDocument(rest[0])
	if err != nil {
		return err
	}
	found, err := doc.Lookup(q)
	if err != nil {
		return fmt.Errorf("%s: %w", display(rest[0]), err)
	}
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(found)
	}
	return printFound(out, found)
}

func readDocument(name string) (*stream.Document, error) {
	in, err := read(name)
	if err != nil {
		return nil, err
	}
	doc, err := stream.ParseDocument(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", display(name), err)
	}
	return doc, nil
}

// printFound prints a line for everything there is to say about each image,
// and an empty line between images.
func printFound(out io.Writer, found []stream.Found) error {
	for i, f := range found {
		if i > 0 {
			fmt.Fprintln(out)
		}
		line := func(name, value string) {
			if value != "" {
				fmt.Fprintf(out, "%-20s %s\n", name+":", printable(value))
			}
		}
		line("kind", string(f.Kind))
		line("architecture", f.Architecture)
		line("platform", f.Platform)
		line("release", f.Release)
		line("format", f.Format)
		line("location", f.Location)
		line("signature", f.Signature)
		line("sha256", f.Sha256)
		line("uncompressed-sha256", f.UncompressedSha256)
		line("url", f.URL)
		line("urn", f.URN)
		line("plan", f.Plan)
		if f.Generation > 0 {
			line("generation", fmt.Sprint(f.Generation))
		}
		line("schema", f.Schema)
		line("place", f.Place)
	}
	return nil
}

// thisArch is the machine's architecture as RPM names it.
func thisArch() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}
