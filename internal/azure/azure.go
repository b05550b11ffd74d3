// Package azure tells whether this machine is an Azure VM.
package azure

import (
	"io/fs"
	"strings"
)

// Where the kernel shows its command line and the SMBIOS chassis asset tag,
// proc(5) and Documentation/ABI/testing/sysfs-class-dmi, relative to /.
const (
	cmdlinePath  = "proc/cmdline"
	assetTagPath = "sys/class/dmi/id/chassis_asset_tag"
)

// assetTag is the chassis asset tag of every Azure and Azure Stack Hub VM.
const assetTag = "7783-7084-3265-9085-8269-3286-77"

// platformArg is how Ignition's images name their platform on the kernel
// command line.
const platformArg = "ignition.platform.id="

// Detect reports whether the machine is an Azure VM, and what it was told by.
// root is the file system from / on. The kernel argument decides; only without
// one does the asset tag. A file that cannot be read counts as empty.
func Detect(root fs.FS) (bool, string) {
	cmdline, _ := fs.ReadFile(root, cmdlinePath)
	other := ""
	for arg := range strings.FieldsSeq(string(cmdline)) {
		id, ok := strings.CutPrefix(arg, platformArg)
		if !ok {
			continue
		}
		switch id = strings.Trim(id, `"`); id {
		case "azure", "azurestack":
			return true, platformArg + id
		default:
			other = platformArg + id
		}
	}
	if other != "" {
		return false, other
	}
	tag, _ := fs.ReadFile(root, assetTagPath)
	if strings.TrimSpace(string(tag)) == assetTag {
		return true, "chassis asset tag " + assetTag
	}
	return false, "no " + platformArg + "azure on the kernel command line, chassis asset tag " + quoteTag(tag)
}

func quoteTag(tag []byte) string {
	s := strings.TrimSpace(string(tag))
	if s == "" {
		return "absent"
	}
	return `"` + s[:min(len(s), 64)] + `"`
}
