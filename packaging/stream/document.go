package stream

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/internal/jsontree"
)

// MaxSize bounds the documents that are read. A published one has 0.1 MiB.
const MaxSize = jsontree.MaxSize

// A Document is a stream document as it was written, or the marketplace file
// that openshift-install keeps beside one.
type Document struct {
	doc           *jsontree.Doc
	isMarketplace bool
	prefix        string   // of every place, if the document was inside a ConfigMap
	streams       []string // of that ConfigMap
}

// NewDocument returns an empty document.
func NewDocument() *Document { return &Document{doc: jsontree.New()} }

// ParseDocument reads a stream document, or a marketplace file. It fails on
// what is not a JSON object, or is one that JSON readers would disagree about;
// whether the object makes sense is Verify's business.
func ParseDocument(in []byte) (*Document, error) {
	doc, err := jsontree.Parse(in)
	if err != nil {
		return nil, err
	}
	d := &Document{doc: doc}
	root := doc.Root()
	if root.Get("architectures") != nil || root.Get("stream") != nil {
		return d, nil
	}
	if kind, ok := root.Get("kind").Text(); ok {
		return nil, fmt.Errorf("holds a Kubernetes %.130s: want the stream document in it (for a ConfigMap: jq -r .data.stream)", kind)
	}
	for _, n := range root.All() {
		d.isMarketplace = d.isMarketplace || n.Get("azure") != nil
	}
	return d, nil
}

var errMarketplace = errors.New("is a marketplace file: want a stream document, into which --marketplace puts it")

// Bytes returns the document; what was not changed is as it was read.
func (d *Document) Bytes() []byte { return d.doc.Bytes() }

// A Problem is one thing wrong with a document.
type Problem struct {
	Path string // where, as jq takes it behind a dot
	Text string // what, and what to do about it

	// Schema is set if the JSON Schema finds it too. The other problems are
	// contradictions, which a schema cannot see.
	Schema bool
}

func (p Problem) String() string { return p.Path + ": " + p.Text }

// path joins names as jq does, with quotes around those that need them.
func path(names ...string) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteByte('.')
		}
		if isIdentifier(name) {
			b.WriteString(name)
		} else {
			fmt.Fprintf(&b, "%q", name)
		}
	}
	return b.String()
}

func isIdentifier(s string) bool {
	const letters = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && strings.Trim(s, letters+"0123456789") == "" && strings.Contains(letters, s[:1])
}
