// Package azure detects whether this machine is an Azure VM.
package azure

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
)

// Where the kernel shows its command line and the SMBIOS chassis asset tag,
// proc(5) and Documentation/ABI/testing/sysfs-class-dmi, relative to /.
const (
	cmdlinePath  = "proc/cmdline"
	assetTagPath = "sys/class/dmi/id/chassis_asset_tag"
)

// assetTag is the chassis asset tag of every Azure and Azure Stack Hub VM.
const assetTag = "7783-7084-3265-9085-8269-3286-77"

// platformArg names the platform of Ignition's images on the kernel command line.
const platformArg = "ignition.platform.id="

// space is what separates arguments.
const space = " \t\n\v\f\r"

// Detect reports whether the machine is an Azure VM, and what identified it.
// root is the file system from / on. The kernel argument decides; only without
// one does the asset tag. A file that does not exist counts as empty; one that
// cannot be read is an error, as the platform is then unknown.
//
// The gate, packaging/rpm/90-nm-azure-dispatch, must start the program wherever
// Detect returns true or an error.
func Detect(root fs.FS) (is bool, why string, err error) {
	cmdline, err := read(root, cmdlinePath)
	if err != nil {
		return false, "", err
	}
	other := ""
	for _, arg := range arguments(cmdline) {
		switch id, ok := strings.CutPrefix(arg, platformArg); {
		case !ok:
		case id == "azure" || id == "azurestack":
			return true, arg, nil
		default:
			other = arg
		}
	}
	if other != "" {
		return false, bounded.Text(other), nil
	}
	tag, err := read(root, assetTagPath)
	if err != nil {
		return false, "", err
	}
	tag, _, _ = strings.Cut(tag, "\n")
	switch tag = strings.Trim(tag, " \t"); tag {
	case assetTag:
		return true, "chassis asset tag " + assetTag, nil
	case "":
		tag = "absent"
	default:
		tag = `"` + bounded.Text(tag) + `"`
	}
	return false, "no " + platformArg + "azure on the kernel command line, chassis asset tag " + tag, nil
}

func read(root fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(root, name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return string(b), nil
	}
	return "", fmt.Errorf("azure: platform unknown: cannot read /%s: %w", name, errors.Unwrap(err)) // its path lacks the slash
}

// arguments splits a command line as the kernel does, next_arg in lib/cmdline.c:
// white space separates, but not between two double quotes; quotes around an
// argument, or around its value, are dropped.
func arguments(cmdline string) []string {
	var args []string
	for {
		cmdline = strings.TrimLeft(cmdline, space)
		if cmdline == "" {
			return args
		}
		end, quoted := 0, false
		for ; end < len(cmdline) && (quoted || strings.IndexByte(space, cmdline[end]) < 0); end++ {
			quoted = quoted != (cmdline[end] == '"')
		}
		var arg string
		arg, cmdline = cmdline[:end], cmdline[end:]
		arg, whole := strings.CutPrefix(arg, `"`)
		name, value, _ := strings.Cut(arg, "=")
		if value, part := strings.CutPrefix(value, `"`); part {
			arg = strings.TrimSuffix(name+"="+value, `"`)
		} else if whole {
			arg = strings.TrimSuffix(arg, `"`)
		}
		args = append(args, arg)
	}
}
