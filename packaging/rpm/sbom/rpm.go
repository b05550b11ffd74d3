package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// rpmPackage is what the document says about the package itself.
type rpmPackage struct {
	name, version, arch string // version with the release
	sha256              string
}

func readPackage(path string) (rpmPackage, error) {
	m := regexp.MustCompile(`^(.+)-([^-]+-[^-]+)\.([^.]+)\.rpm$`).FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return rpmPackage{}, fmt.Errorf("%s: want NAME-VERSION-RELEASE.ARCH.rpm", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return rpmPackage{}, err
	}
	sum := sha256.Sum256(b)
	return rpmPackage{name: m[1], version: m[2], arch: m[3], sha256: hex.EncodeToString(sum[:])}, nil
}
