package stream

import "strings"

// A Digest is a SHA-256 that the document gives for a file.
type Digest struct {
	Sha256  string
	Place   string // where in the document, as jq takes it behind a dot
	Release string
}

// Digests returns what the SHA-256 of a file may be, given its name: that of
// the compressed file if the name ends in .xz or .gz, and that of the disk
// otherwise. An empty arch stands for every architecture. Digests that break
// the schema are left out.
func (d *Document) Digests(arch, name string) []Digest {
	var all []Digest
	for _, f := range d.All() {
		if f.Kind != KindVHD || arch != "" && f.Architecture != arch {
			continue
		}
		digest := Digest{Sha256: f.Sha256, Place: d.prefix + f.Place + ".sha256", Release: f.Release}
		_, compression, compressed := strings.Cut(f.Format, ".")
		switch {
		case compressed && strings.HasSuffix(name, "."+compression):
		case IsCompressed(name):
			continue
		case compressed:
			digest.Sha256, digest.Place = f.UncompressedSha256, d.prefix+f.Place+`."uncompressed-sha256"`
		}
		if digest.Sha256 != "" {
			all = append(all, digest)
		}
	}
	return all
}

// IsCompressed says whether a file of that name is to be decompressed before
// it is a disk.
func IsCompressed(name string) bool {
	return strings.HasSuffix(name, ".xz") || strings.HasSuffix(name, ".gz")
}
