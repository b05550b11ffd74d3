package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDescribe(t *testing.T) {
	pkg := rpmPackage{name: "p", version: "1-2", arch: "x86_64", sha256: "ab"}
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Settings:  []debug.BuildSetting{{Key: "CGO_ENABLED", Value: "0"}},
		Deps: []*debug.Module{
			{Path: "example.org/a", Version: "v1.0.0", Sum: "h1:x"},
			{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/c", Version: "v3.0.0"}},
		},
	}
	const app = "pkg:rpm/p@1-2?arch=x86_64"
	want := document{
		BOMFormat: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Metadata: metadata{Component: component{
			Type: "application", Ref: app, Name: "p", Version: "1-2", PURL: app,
			Hashes:     []hash{{"SHA-256", "ab"}},
			Properties: []property{{"go:build:CGO_ENABLED", "0"}},
		}},
		Components: []component{
			{Type: "library", Ref: "pkg:golang/std@1.26.8", Name: "std", Version: "1.26.8", PURL: "pkg:golang/std@1.26.8"},
			{
				Type: "library", Ref: "pkg:golang/example.org/a@v1.0.0", Name: "example.org/a", Version: "v1.0.0",
				PURL: "pkg:golang/example.org/a@v1.0.0", Properties: []property{{"go:sum", "h1:x"}},
			},
			{
				Type: "library", Ref: "pkg:golang/example.org/c@v3.0.0", Name: "example.org/c", Version: "v3.0.0",
				PURL: "pkg:golang/example.org/c@v3.0.0",
			},
		},
		Dependencies: []dependency{{Ref: app, DependsOn: []string{
			"pkg:golang/std@1.26.8", "pkg:golang/example.org/a@v1.0.0", "pkg:golang/example.org/c@v3.0.0",
		}}},
	}
	if diff := cmp.Diff(want, describe(pkg, info)); diff != "" {
		t.Errorf("describe (-want +got):\n%s", diff)
	}
}

func TestReadPackage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nm-azure-dispatch-0.1.0-1.fc44.x86_64.rpm")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readPackage(path)
	if err != nil {
		t.Fatal(err)
	}
	want := rpmPackage{
		name: "nm-azure-dispatch", version: "0.1.0-1.fc44", arch: "x86_64",
		sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	}
	if got != want {
		t.Errorf("readPackage:\n got %+v\nwant %+v", got, want)
	}
	if _, err := readPackage("x.rpm"); err == nil || err.Error() != "x.rpm: want NAME-VERSION-RELEASE.ARCH.rpm" {
		t.Errorf("readPackage of x.rpm: %v", err)
	}
}
