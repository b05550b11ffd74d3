package stream_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

// FuzzDocument: whatever is read is given back as it was, the tool and the
// schema agree on it, and what lookup hands out is usable.
func FuzzDocument(f *testing.F) {
	// Small ones: an execution with one of the published ones, of 3 to 10 kB, takes a millisecond or more.
	for _, name := range []string{"draft-url.json", "draft-private.json", "draft-image.json", "marketplace.json"} {
		f.Add(testdata(f, name))
	}
	f.Add([]byte(`{"kind":"ConfigMap","data":{"stream":"{\"stream\":\"s\",\"architectures\":{}}"}}`))
	f.Add([]byte("kind: ConfigMap\ndata:\n  stream: |\n    {\"stream\": \"s\", \"architectures\": {}}\n"))
	f.Add([]byte(`{"stream":"s","architectures":{"x86_64":{"artifacts":{"azure":{"release":"1","formats":{"vhd":{"disk":null}}}}}}}`))
	schema := compiled(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		d, err := stream.ReadDocument(in, "")
		if err != nil {
			return
		}
		if p, err := stream.ParseDocument(in); err == nil && !bytes.Equal(p.Bytes(), in) {
			t.Fatalf("%q became %q", in, p.Bytes())
		}
		agree(t, schema, "fuzzed", d.Bytes())
		found, _, err := d.Lookup(stream.Query{Arch: "x86_64"})
		if _, notFound := errors.AsType[*stream.NotFoundError](err); len(found) == 0 && err == nil || notFound && len(found) > 0 {
			t.Fatalf("found %v, error %v", found, err)
		}
		for _, f := range found {
			if f.URL+f.Location+f.URN == "" {
				t.Fatalf("found nothing to use: %+v", f)
			}
		}
		d.Digests("", "disk.vhd")
	})
}

// FuzzAdd: a meta.json that is taken can be added to any document, or not at
// all; and once more without a change.
func FuzzAdd(f *testing.F) {
	for _, m := range []string{"meta-fcos.json", "meta-rhcos.json"} {
		f.Add(testdata(f, m), testdata(f, "rhcos.json"))
		f.Add(testdata(f, m), []byte(`{"architectures":{"x86_64":null}}`))
	}
	f.Fuzz(func(t *testing.T, metaJSON, doc []byte) {
		m, err := stream.ParseMeta(metaJSON)
		if err != nil {
			return
		}
		d, err := stream.ParseDocument(doc)
		if err != nil {
			d = stream.NewDocument()
		}
		opts := stream.AddOptions{BaseURL: base}
		if _, err := d.Add(m, opts); err != nil {
			return
		}
		once := d.Bytes()
		d, err = stream.ParseDocument(once)
		if err != nil {
			t.Fatalf("cannot read %q: %v", once, err)
		}
		if _, err := d.Add(m, opts); err != nil || !bytes.Equal(d.Bytes(), once) {
			t.Fatalf("error %v; %q became %q", err, once, d.Bytes())
		}
		for platform := range m.Images {
			if _, _, err := d.Lookup(stream.Query{Arch: m.Arch, Kind: stream.KindVHD, Platform: platform}); err != nil {
				t.Fatalf("%v in %q", err, once)
			}
		}
	})
}

// FuzzMerge: a marketplace file that is taken is merged into any document, or
// not at all; and once more without a change.
func FuzzMerge(f *testing.F) {
	f.Add(testdata(f, "marketplace.json"), testdata(f, "rhcos.json"))
	f.Add(testdata(f, "rhcos.json"), testdata(f, "fcos.json"))
	f.Add(testdata(f, "marketplace.json"), []byte(`{"architectures":{"x86_64":{"rhel-coreos-extensions":null}}}`))
	f.Fuzz(func(t *testing.T, from, into []byte) {
		market, err := stream.ParseDocument(from)
		if err != nil {
			return
		}
		d, err := stream.ParseDocument(into)
		if err != nil {
			return
		}
		if _, err := d.Merge(market); err != nil {
			return
		}
		once := d.Bytes()
		d, err = stream.ParseDocument(once)
		if err != nil {
			t.Fatalf("cannot read %q: %v", once, err)
		}
		if _, err := d.Merge(market); err != nil || !bytes.Equal(d.Bytes(), once) {
			t.Fatalf("error %v; %q became %q", err, once, d.Bytes())
		}
	})
}
