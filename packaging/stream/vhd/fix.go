package vhd

import (
	"fmt"
	"path/filepath"
	"strings"
)

// rebuild is all that helps where content is missing.
const rebuild = "get the file again, or build it again: " +
	"qemu-img convert -f raw -O vpc -o subformat=fixed,force_size SOURCE.raw DISK.vhd"

// maxQemu is the largest VHD that qemu-img makes.
const maxQemu = 2040 << 30

// fix returns the commands that make a right VHD of one with footer f. All
// that is before the footer stays, whatever the footer says.
func (c *checker) fix(f Footer) string {
	switch {
	case f.Type == Fixed:
		return c.raw(c.size - FooterSize)
	case f.Type == Differencing:
		return "merge it with its parent (Merge-VHD), then verify the result"
	case f.Type != Dynamic:
		return rebuild
	case f.CurrentSize > maxQemu:
		return tooLarge
	}
	// Without force_size_calc qemu-img goes by the geometry of a VHD that
	// another program made, which can be smaller than the disk.
	source := "driver=vpc,force_size_calc=current_size,file.filename=" + option(c.name)
	return c.convert("--image-opts -O vpc", quote(source), int64(f.CurrentSize))
}

// raw returns the commands that make a VHD of the file's first n bytes.
func (c *checker) raw(n int64) string {
	switch {
	case n == c.size:
		return c.convert("-f raw -O vpc", file(c.name), n)
	case n%sector == 0:
		return c.convert("--image-opts -O vpc", quote(fmt.Sprintf("driver=raw,size=%d,file.filename=%s", n, option(c.name))), n)
	}
	// qemu-img counts in sectors, and would drop the last bytes.
	part := file(sibling(c.name, ".fixed.raw"))
	return fmt.Sprintf("head -c %d %s > %s && %s", n, file(c.name), part, c.convert("-f raw -O vpc", part, n))
}

const tooLarge = "qemu-img makes no VHD over 2040 GiB: make the disk smaller, or use Hyper-V's Convert-VHD and Resize-VHD"

// convert makes a VHD of a source that has size bytes. A size that Azure does
// not take is rounded up, by copying into a VHD that is made beforehand.
func (c *checker) convert(flags, source string, size int64) string {
	const fixed = "-o subformat=fixed,force_size"
	want := max((size+MiB-1)/MiB*MiB, MinFile-FooterSize)
	out := file(sibling(c.name, ".fixed.vhd"))
	switch {
	case want > maxQemu:
		return tooLarge
	case want == size:
		return fmt.Sprintf("qemu-img convert %s %s %s %s", flags, fixed, source, out)
	}
	return fmt.Sprintf("qemu-img create -q -f vpc %s %s %d && qemu-img convert -n --target-is-zero %s %s %s",
		fixed, out, want, flags, source, out)
}

// sibling is a name for what is made of a file: never the file's own.
func sibling(name, ext string) string {
	base := strings.TrimSuffix(name, filepath.Ext(name))
	if base == "" || strings.HasSuffix(base, "/") {
		base = name
	}
	if ext == ".vhd" && filepath.Ext(base) == ".vhd" {
		ext = "" // disk.vhd.xz
	}
	if base+ext == name {
		ext += ".vhd"
	}
	return base + ext
}

// option is a file name for use in --image-opts, where a comma ends a value.
func option(name string) string { return strings.ReplaceAll(name, ",", ",,") }

// file is a file name for a shell, not to be taken for an option or a URL.
func file(name string) string {
	first, _, _ := strings.Cut(name, "/")
	if strings.HasPrefix(name, "-") || strings.Contains(first, ":") {
		name = "./" + name
	}
	return quote(name)
}

// count is n with the noun that fits.
func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// quote is s for a shell.
func quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,=:@+"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
