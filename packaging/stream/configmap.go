package stream

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/internal/jsontree"
)

// ReadDocument reads a stream document as it is published: as it is, or in the
// ConfigMap coreos-bootimages of OpenShift, which is JSON or YAML. The name
// chooses one of the ConfigMap's streams; if it is empty, the default one is
// taken, or the only one.
func ReadDocument(in []byte, name string) (*Document, error) {
	data, err := configMap(in)
	if err != nil {
		return nil, err
	}
	if data == nil && name != "" {
		return nil, fmt.Errorf("is not a ConfigMap, so there is no stream %q to choose", name)
	}
	if data == nil {
		return ParseDocument(in)
	}
	streams, names := map[string]string{}, []string(nil)
	if text := data["streams"]; text != "" {
		doc, err := jsontree.Parse([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("data.streams: %w", err)
		}
		for n, value := range doc.Root().All() {
			streams[n], names = value.Raw(), append(names, n)
		}
	}
	text, isDefault := data["stream"]
	prefix := "data.stream | fromjson | ."
	if name == "" && !isDefault && len(names) == 1 {
		name = names[0]
	}
	if name != "" {
		text, isDefault = streams[name]
		prefix = "data.streams | fromjson | ." + path(name) + "."
	}
	if !isDefault {
		return nil, fmt.Errorf("is a ConfigMap without a stream %q; --os-stream chooses one of: %s", cmp.Or(name, "stream"), strings.Join(names, ", "))
	}
	d, err := ParseDocument([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.TrimRight(prefix, " |."), err)
	}
	d.prefix, d.streams = prefix, names
	return d, nil
}

// Streams returns the names of the streams in the ConfigMap that the document
// came in.
func (d *Document) Streams() []string { return d.streams }

// configMap returns the data of a ConfigMap, and nil if it is none, and so may
// be a stream document. What is not JSON is left to ParseDocument.
func configMap(in []byte) (map[string]string, error) {
	if err := jsontree.CheckText(in); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(in, []byte("kind:")) || bytes.Contains(in, []byte("\nkind:")) {
		var c struct {
			Kind string
			Data map[string]string
		}
		if err := yaml.Unmarshal(in, &c); err != nil {
			return nil, fmt.Errorf("not YAML of a ConfigMap: %.300s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if c.Kind != "ConfigMap" {
			return nil, fmt.Errorf("holds a Kubernetes %.130s: want a ConfigMap, or a stream document in JSON", c.Kind)
		}
		return c.Data, nil
	}
	doc, err := jsontree.Parse(in)
	if err != nil {
		return nil, nil
	}
	if kind, _ := doc.Root().Get("kind").Text(); kind != "ConfigMap" {
		return nil, nil
	}
	data := map[string]string{}
	for name, n := range doc.Root().Get("data").All() {
		data[name], _ = n.Text()
	}
	return data, nil
}
