package stream_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVerify(t *testing.T) {
	fcos, rhcos := testdata(t, "fcos.json"), testdata(t, "rhcos.json")
	disk := []string{"architectures", "x86_64", "artifacts", "azure", "formats", "vhd.xz", "disk"}
	const place = `architectures.x86_64.artifacts.azure.formats."vhd.xz".disk.`
	tests := []struct {
		name string
		doc  []byte
		want []string
	}{
		{"FCOS", fcos, nil},
		{"RHCOS", rhcos, nil},
		{"http", edit(t, fcos, "http://h/44.20260707.3.1", append(disk, "location")...), []string{
			place + `location: is "http://h/44.20260707.3.1"; want https://HOST/PATH`,
		}},
		{"no location", edit(t, fcos, nil, append(disk, "location")...), []string{
			place + `location: is missing; want https://HOST/PATH`,
		}},
		{"upper case digest", edit(t, fcos, strings.Repeat("AB", 32), append(disk, "sha256")...), []string{
			place + `sha256: is "` + strings.Repeat("AB", 32) + `"; want a SHA-256 of 64 hex digits in lower case`,
		}},
		{"MD5", edit(t, fcos, strings.Repeat("a", 32), append(disk, "uncompressed-sha256")...), []string{
			place + `"uncompressed-sha256": is "` + strings.Repeat("a", 32) + `"; want a SHA-256 of 64 hex digits in lower case`,
		}},
		{"not signed", edit(t, fcos, "", append(disk, "signature")...), nil},
		{"number", edit(t, fcos, -1e300, append(disk, "signature")...), []string{
			place + `signature: is a number; want https://HOST/PATH`,
		}},
		{"two releases", edit(t, rhcos, "9.7", "architectures", "x86_64", "artifacts", "azure", "release"), []string{
			`architectures.x86_64.artifacts.azure.release: is "9.7", but architectures.aarch64.artifacts.azure.release is "9.8.20260428-0": ` +
				`run azure-stream add with the meta.json of one and the same build, for x86_64 too`,
			`architectures.x86_64.artifacts.azure.formats."vhd.gz".disk.location: is ` +
				`"https://mirror.example.com/art/storage/prod/streams/rhel-9.8/builds/9.8.20260428-0/x86_64/ours-9.8.20260428-0-azure.x86_64.vhd.gz", ` +
				`which does not name release "9.7": run azure-stream add with a --base-url that does`,
		}},
		{"blob of another release", edit(t, rhcos, "9.7", "architectures", "x86_64", "rhel-coreos-extensions", "azure-disk", "release"), []string{
			`architectures.x86_64."rhel-coreos-extensions"."azure-disk".release: is "9.7", but architectures.aarch64.artifacts.azure.release is "9.8.20260428-0": ` +
				`run azure-stream add with the meta.json of one and the same build, for x86_64 too`,
		}},
		{"one file twice", edit(t, fcos, strings.Repeat("3", 64), append(disk, "sha256")...), []string{
			place + `sha256: is the digest at architectures.aarch64.artifacts.azure.formats."vhd.xz".disk.sha256 too, so one of the two is of another file: run azure-stream add for both`,
		}},
		{"no formats", edit(t, rhcos, map[string]any{}, "architectures", "x86_64", "artifacts", "azure", "formats"), []string{
			`architectures.x86_64.artifacts.azure.formats: has no image: run azure-stream add with the meta.json of x86_64`,
		}},
		{"another platform is behind", edit(t, fcos, "43", "architectures", "aarch64", "artifacts", "aws", "release"), nil},
		{"URN with a colon", edit(t, rhcos, "a:b", "architectures", "x86_64", "rhel-coreos-extensions", "marketplace", "azure", "ocp", "hyperVGen1", "sku"), []string{
			`architectures.x86_64."rhel-coreos-extensions".marketplace.azure.ocp.hyperVGen1.sku: is "a:b"; want a name without blanks and colons`,
		}},
		{"draft", testdata(t, "draft-url.json"), []string{
			"architectures.x86_64.artifacts: is missing; want an object",
			"architectures: has nothing for Azure: put it there with azure-stream add; architectures.x86_64.azure.url is of an early draft, which only azure-stream lookup reads",
		}},
		{"empty object", []byte(`{}`), []string{
			"stream: is missing; want a string that is not empty",
			"architectures: is missing; want an object",
			"architectures: has nothing for Azure: put it there with azure-stream add",
		}},
		{"other letters", []byte(`{"Stream":"s","ARCHITECTURES":{}}`), []string{
			"stream: is missing; want a string that is not empty",
			"architectures: is missing; want an object",
			"architectures: has nothing for Azure: put it there with azure-stream add",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range document(t, tt.doc).Verify() {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
