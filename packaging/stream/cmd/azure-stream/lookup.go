package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

func lookup(out io.Writer, args []string) error {
	fs := flag.NewFlagSet("lookup", flag.ContinueOnError)
	q := stream.Query{Arch: runtime.GOARCH}
	fs.StringVar(&q.Arch, "arch", q.Arch, "")
	kind := fs.String("kind", "", "")
	fs.StringVar(&q.Plan, "plan", "", "")
	generation := fs.String("generation", "", "")
	fs.BoolVar(&q.Confidential, "confidential", false, "")
	fs.BoolVar(&q.All, "all", false, "")
	fs.StringVar(&q.Platform, "platform", stream.Platforms()[0], "")
	marketplace := fs.String("marketplace", "", "")
	osStream := fs.String("os-stream", "", "")
	asJSON := fs.Bool("json", false, "")
	rest, err := parse(fs, out, args)
	if err != nil || rest == nil {
		return err
	}
	if q, err = query(q, *kind, *generation); err != nil {
		return err
	}
	if len(rest) != 1 {
		return usageError{"lookup", fmt.Sprintf("lookup takes one stream.json, not %d", len(rest))}
	}
	doc, err := readDocument(rest[0], *osStream)
	if err != nil {
		return err
	}
	if *marketplace != "" {
		if err := merge(doc, rest[0], *marketplace); err != nil {
			return err
		}
	}
	found, reason, err := doc.Lookup(q)
	if err != nil {
		return fmt.Errorf("%s: %w", display(rest[0]), err)
	}
	fmt.Fprintf(os.Stderr, "azure-stream: %s\n", printable(reason))
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(found)
	}
	printFound(out, found)
	return nil
}

// query checks what the flags say, and completes it.
func query(q stream.Query, kind, generation string) (stream.Query, error) {
	var kinds []string
	for _, k := range stream.Kinds() {
		kinds = append(kinds, string(k))
	}
	for _, flag := range []struct {
		name, value string
		want        []string
	}{
		{"kind", kind, kinds},
		{"plan", q.Plan, stream.Plans()},
		{"platform", q.Platform, stream.Platforms()},
		{"generation", generation, []string{"V2", "V1"}},
	} {
		if flag.value != "" && !slices.Contains(flag.want, flag.value) {
			return q, usageError{"lookup", fmt.Sprintf("no --%s %q, want one of %s", flag.name, flag.value, strings.Join(flag.want, ", "))}
		}
	}
	q.Kind, q.Generation, q.Arch = stream.Kind(kind), slices.Index([]string{"", "V1", "V2"}, generation), archName(q.Arch)
	if q.Arch == "" {
		return q, usageError{"lookup", "--arch is empty"}
	}
	return q, nil
}

// printFound prints a line for everything there is to say about each image,
// under the names that it has in JSON, and an empty line between images.
func printFound(out io.Writer, found []stream.Found) {
	for i, f := range found {
		if i > 0 {
			fmt.Fprintln(out)
		}
		for field, value := range reflect.ValueOf(f).Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); !value.IsZero() {
				fmt.Fprintf(out, "%-20s %s\n", name+":", printable(fmt.Sprint(value)))
			}
		}
	}
}

// archName returns the name that RPM, and so the document, has for an
// architecture that is called as Go, Debian or Azure call it.
func archName(name string) string {
	switch strings.ToLower(name) {
	case "amd64", "x64", "x86-64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return name
}
