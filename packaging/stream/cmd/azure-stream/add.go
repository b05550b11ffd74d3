package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

func add(out io.Writer, args []string) error {
	fs := flag.NewFlagSet("add", flag.ContinueOnError)
	meta := fs.String("meta", "", "")
	marketplace := fs.String("marketplace", "", "")
	name := fs.String("stream", "", "")
	var opts stream.AddOptions
	fs.StringVar(&opts.BaseURL, "base-url", "", "")
	fs.BoolVar(&opts.Unsigned, "no-signatures", false, "")
	rest, err := parse(fs, out, args)
	switch {
	case err != nil || rest == nil:
		return err
	case len(rest) > 0:
		return usageError{"add", fmt.Sprintf("add takes no argument, not %q", rest[0])}
	case *meta == "" && *marketplace == "":
		return usageError{"add", "add needs --meta meta.json or --marketplace FILE"}
	case *meta == "" && *name == "":
		return usageError{"add", "--marketplace needs a --stream to put the images into, or a --meta"}
	case *name == "-":
		return usageError{"add", "--stream is changed in place and so has to be a file; without it the document is printed"}
	}
	if err := stream.CheckBaseURL(opts.BaseURL); err != nil {
		return usageError{"add", err.Error()}
	}

	doc, t := stream.NewDocument(), target{}
	if *name != "" {
		if t, err = readTarget(*name); err != nil {
			return err
		}
		if doc, err = stream.ParseDocument(t.old); err != nil {
			return fmt.Errorf("%s: %w", *name, err)
		}
	}
	if *meta != "" {
		if err := addMeta(doc, *name, *meta, opts); err != nil {
			return err
		}
	}
	if *marketplace != "" {
		if err := merge(doc, *name, *marketplace); err != nil {
			return err
		}
	}
	if *name != "" {
		return t.replace(doc.Bytes())
	}
	_, err = out.Write(doc.Bytes())
	return err
}

// addMeta adds the build of a meta.json to a document.
func addMeta(doc *stream.Document, name, meta string, opts stream.AddOptions) error {
	in, err := read(meta)
	if err != nil {
		return err
	}
	m, err := stream.ParseMeta(in)
	if err != nil {
		return fmt.Errorf("%s: %w", display(meta), err)
	}
	notes, err := doc.Add(m, opts)
	if err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(name, display(meta)), err)
	}
	note(notes...)
	return nil
}
