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
		return fmt.Errorf("%s: %w", *meta, err)
	}
	if *name == "" {
		doc := stream.NewDocument()
		if err := addTo(doc, m, opts); err != nil {
			return err
		}
		_, err := out.Write(doc.Bytes())
		return err
	}
	t, err := readTarget(*name)
	if err != nil {
		return err
	}
	doc, err := stream.ParseDocument(t.old)
	if err != nil {
		return fmt.Errorf("%s: %w", *name, err)
	}
	if err := addTo(doc, m, opts); err != nil {
		return fmt.Errorf("%s: %w", *name, err)
	}
	return t.replace(doc.Bytes())
}

// addTo adds to a document and passes on the notes.
func addTo(doc *stream.Document, m stream.Meta, opts stream.AddOptions) error {
	notes, err := doc.Add(m, opts)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(os.Stderr, "azure-stream: note: %s\n", note)
	}
	return nil
}
