package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/vhd"
)

func verify(out *bufio.Writer, args []string) error {
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	disk := fs.String("vhd", "", "")
	arch := fs.String("arch", "", "")
	osStream := fs.String("os-stream", "", "")
	rest, err := parse(fs, out, args)
	switch {
	case err != nil || rest == nil:
		return err
	case len(rest) > 1:
		return usageError{"verify", fmt.Sprintf("verify takes one stream.json, not %d", len(rest))}
	case len(rest) == 0 && *disk == "":
		return usageError{"verify", "verify needs a stream.json, or --vhd FILE"}
	case *disk == "-":
		return usageError{"verify", "--vhd has to be a file, since both its ends are read"}
	case *arch != "" && (*disk == "" || len(rest) == 0):
		return usageError{"verify", "--arch says which digests to take, with both --vhd and a stream.json"}
	}

	var doc *stream.Document
	if len(rest) == 1 {
		if doc, err = readDocument(rest[0], *osStream); err != nil {
			return err
		}
	}
	if *disk != "" {
		return verifyDisk(out, *disk, doc, archName(*arch))
	}
	return verifyDocument(out, printable(display(rest[0])), doc)
}

func verifyDocument(out io.Writer, name string, doc *stream.Document) error {
	problems := doc.Verify()
	for _, p := range problems {
		fmt.Fprintf(out, "%s: %s\n", name, printable(p.String()))
	}
	if len(problems) > 0 {
		return errWrong
	}
	var lines []string
	for _, f := range doc.All() {
		line := fmt.Sprintf("%s: ok: %s", name, printable(f.String()))
		if f.Release != "" {
			line += ", release " + printable(f.Release)
		}
		lines = append(lines, line+"\n")
	}
	_, err := io.WriteString(out, strings.Join(slices.Compact(lines), ""))
	return err
}

// verifyDisk looks at a disk and, if there is a document, at its digest.
func verifyDisk(out *bufio.Writer, name string, doc *stream.Document, arch string) error {
	f, info, err := open(name, name, os.O_RDONLY, false)
	if err != nil {
		return err
	}
	defer f.Close()
	name = printable(name)
	switch {
	case doc != nil && stream.IsCompressed(name):
		fmt.Fprintf(out, "%s: not looked at: the disk inside; decompress it and verify that too\n", name)
	default:
		footer, problems, err := vhd.Check(f, info.Size(), name)
		if err != nil {
			return plainError(name, err)
		}
		printProblems(out, name, problems)
		verdict := "ok: a fixed VHD"
		for _, p := range problems {
			if p.Verdict != vhd.Warning {
				return errWrong
			}
			verdict = "with warnings: a fixed VHD"
		}
		fmt.Fprintf(out, "%s: %s of %d MiB, checksum 0x%08x\n", name, verdict, footer.CurrentSize/vhd.MiB, footer.Checksum)
	}
	if doc == nil {
		return nil
	}
	if err := out.Flush(); err != nil { // the digest can take minutes
		return err
	}
	return verifyDigest(out, f, info.Size(), name, doc.Digests(arch, name))
}

// printProblems prints each problem, and behind those that one command fixes
// that command.
func printProblems(out io.Writer, name string, problems []vhd.Problem) {
	for i, p := range problems {
		fmt.Fprintf(out, "%s: %s\n", name, p)
		if i+1 == len(problems) || problems[i+1].Fix != p.Fix {
			for way := range strings.Lines(p.Fix) {
				fmt.Fprintf(out, "    to fix it: %s\n", strings.TrimSuffix(way, "\n"))
			}
		}
	}
}
