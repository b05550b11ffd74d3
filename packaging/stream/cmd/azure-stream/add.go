package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

func add(out io.Writer, args []string) error {
	fs := flag.NewFlagSet("add", flag.ContinueOnError)
	meta := fs.String("meta", "", "")
	name := fs.String("stream", "", "")
	var opts stream.AddOptions
	fs.StringVar(&opts.BaseURL, "base-url", "", "")
	fs.BoolVar(&opts.Unsigned, "no-signatures", false, "")
	rest, err := parse(fs, out, args, addHelp)
	switch {
	case err != nil || rest == nil:
		return err
	case len(rest) > 0:
		return usageError{"add", fmt.Sprintf("add takes no argument, and not %q", rest[0])}
	case *meta == "":
		return usageError{"add", "add needs --meta meta.json"}
	case *name == "-":
		return usageError{"add", "--stream is changed in place and so has to be a file; without it the document is printed"}
	}
	if err := stream.CheckBaseURL(opts.BaseURL); err != nil {
		return usageError{"add", err.Error()}
	}

	in, err := read(*meta)
	if err != nil {
		return err
	}
	m, err := stream.ParseMeta(in)
	if err != nil {
		return fmt.Errorf("%s: %w", display(*meta), err)
	}
	notes, err := addTo(out, *name, m, opts)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(os.Stderr, "azure-stream: note: %s\n", note)
	}
	return nil
}

// addTo adds to the document of that name, or prints a new one.
func addTo(out io.Writer, name string, m stream.Meta, opts stream.AddOptions) ([]string, error) {
	if name == "" {
		doc := stream.NewDocument()
		notes, err := doc.Add(m, opts)
		if err != nil {
			return nil, err
		}
		_, err = out.Write(doc.Bytes())
		return notes, err
	}
	t, err := readTarget(name)
	if err != nil {
		return nil, err
	}
	doc, err := stream.ParseDocument(t.old)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	notes, err := doc.Add(m, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return notes, t.replace(doc.Bytes())
}
