package azure_test

import (
	"testing"
	"testing/fstest"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
)

func TestDetect(t *testing.T) {
	const tag = "7783-7084-3265-9085-8269-3286-77"
	tests := []struct {
		name, cmdline, tag string
		want               bool
		why                string
	}{
		{name: "nothing to read", why: "no ignition.platform.id=azure on the kernel command line, chassis asset tag absent"},
		{name: "kernel argument", cmdline: "quiet ignition.platform.id=azure ro\n", want: true, why: "ignition.platform.id=azure"},
		{name: "Azure Stack Hub", cmdline: "ignition.platform.id=azurestack", want: true, why: "ignition.platform.id=azurestack"},
		{name: "quoted", cmdline: `ignition.platform.id="azure"`, want: true, why: "ignition.platform.id=azure"},
		{name: "asset tag", cmdline: "ro", tag: tag + "\n", want: true, why: "chassis asset tag " + tag},
		{name: "another platform wins over the asset tag", cmdline: "ignition.platform.id=qemu", tag: tag, why: "ignition.platform.id=qemu"},
		{name: "azure beside another", cmdline: "ignition.platform.id=qemu ignition.platform.id=azure", want: true, why: "ignition.platform.id=azure"},
		{name: "a longer word", cmdline: "xignition.platform.id=azure ignition.platform.id=azureish", why: "ignition.platform.id=azureish"},
		{name: "another asset tag", tag: "No Asset Tag", why: `no ignition.platform.id=azure on the kernel command line, chassis asset tag "No Asset Tag"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{}
			if tt.cmdline != "" {
				root["proc/cmdline"] = &fstest.MapFile{Data: []byte(tt.cmdline)}
			}
			if tt.tag != "" {
				root["sys/class/dmi/id/chassis_asset_tag"] = &fstest.MapFile{Data: []byte(tt.tag)}
			}
			got, why := azure.Detect(root)
			if got != tt.want || why != tt.why {
				t.Errorf("got %v, %q; want %v, %q", got, why, tt.want, tt.why)
			}
		})
	}
}
