package main

import (
	"runtime/debug"
	"strings"
)

// The parts of CycloneDX 1.5 that are used, cyclonedx.org/docs/1.5/json. No time and no serial number: the same
// package gives the same document.
type (
	document struct {
		BOMFormat    string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

func describe(pkg rpmPackage, info *debug.BuildInfo) document {
	app := library(pkg.name, pkg.version, "pkg:rpm/"+pkg.name+"@"+pkg.version+"?arch="+pkg.arch)
	app.Type, app.Hashes = "application", []hash{{Alg: "SHA-256", Content: pkg.sha256}}
	for _, s := range info.Settings {
		app.Properties = append(app.Properties, property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	all := []component{library("std", goVersion, "pkg:golang/std@"+goVersion)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := library(m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
		if m.Sum != "" {
			c.Properties = []property{{Name: "go:sum", Value: m.Sum}} // as in go.sum
		}
		all = append(all, c)
	}
	var refs []string
	for _, c := range all {
		refs = append(refs, c.Ref)
	}
	return document{
		BOMFormat: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Metadata: metadata{Component: app}, Components: all,
		Dependencies: []dependency{{Ref: app.Ref, DependsOn: refs}},
	}
}

func library(name, version, purl string) component {
	return component{Type: "library", Ref: purl, Name: name, Version: version, PURL: purl}
}
