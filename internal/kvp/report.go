package kvp

import (
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"
)

// reportKey is the key under which Azure looks for the report.
const reportKey = "PROVISIONING_REPORT"

// maxValue is what of a value the host is sure to see whole, in bytes: it holds
// half of a record's field in UTF-16.
const maxValue = 1022

// helpURL is where every Linux agent's report of a failure points.
const helpURL = "https://aka.ms/linuxprovisioningerror"

// Fields of a report, as azure-init and cloud-init spell them; boot_id is ours.
const (
	fieldResult    = "result="
	fieldReason    = "reason="
	fieldAgent     = "agent="
	fieldBootID    = "boot_id="
	fieldVMID      = "vm_id="
	fieldTimestamp = "timestamp="
	success        = fieldResult + "success"
	failure        = fieldResult + "error"
)

// value is the report: fields of comma-separated values, with bars for commas.
func (r *Reporter) value(reason string, now time.Time) string {
	tail := []string{fieldAgent + r.Agent, fieldBootID + r.BootID, "pps_type=None"}
	if r.VMID != nil {
		if id := r.VMID(); id != "" {
			tail = append(tail, fieldVMID+id)
		}
	}
	tail = append(tail, fieldTimestamp+now.UTC().Format(time.RFC3339))
	if reason == "" {
		return join(append([]string{success}, tail...))
	}
	tail = append(tail, "documentation_url="+helpURL)
	reason = strings.ToValidUTF8(reason, "\ufffd")
	for {
		v := join(append([]string{failure, fieldReason + reason}, tail...))
		over := len(v) - maxValue
		if over <= 0 || reason == "" {
			return v
		}
		reason = cut(reason, len(reason)-min((over+1)/2, len(reason))) // a quote takes up two bytes
	}
}

// cut shortens a text to at most n bytes, whole characters.
func cut(s string, n int) string {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func join(fields []string) string {
	quoted := make([]string, len(fields))
	for i, f := range fields {
		f = strings.Map(printable, f)
		if strings.ContainsAny(f, `|"`) {
			f = `"` + strings.ReplaceAll(f, `"`, `""`) + `"`
		}
		quoted[i] = f
	}
	return strings.Join(quoted, "|")
}

func printable(c rune) rune {
	if c < ' ' || c == 0x7f {
		return ' '
	}
	return c
}

// own reports whether a value is this boot's record.
func (r *Reporter) own(value string) bool {
	return r.BootID != "" && strings.Contains(value, "|"+fieldBootID+r.BootID+"|")
}

// foreign reports whether another agent wrote a value in this boot. One without
// a time that can be read is of an earlier boot.
func (r *Reporter) foreign(value string) bool {
	if strings.Contains(value, "|"+fieldBootID) {
		return false
	}
	_, after, _ := strings.Cut(value, "|"+fieldTimestamp)
	stamp, _, _ := strings.Cut(after, "|")
	// cloud-init writes fractions of a second and +00:00, azure-init RFC 3339.
	t, err := time.Parse(time.RFC3339Nano, stamp)
	return err == nil && !t.Before(r.Booted)
}

// sameResult reports whether a record of this boot need not be written again.
// An error is, for its reason may be another.
func sameResult(value, reason string) bool {
	return reason == "" && strings.HasPrefix(value, success+"|")
}

// Where the firmware's UUID of the machine is, and how to tell the generation
// of the virtual machine, relative to /.
const (
	uuidPath = "sys/class/dmi/id/product_uuid"
	efiPath  = "sys/firmware/efi"
)

// VMID returns the ID that Azure knows the virtual machine by, "" if it cannot
// be read: only root can. A machine without EFI (generation 1) shows the first
// three fields of the UUID in the other byte order.
func VMID(root fs.FS) string {
	b, err := fs.ReadFile(root, uuidPath)
	id := strings.ToLower(strings.TrimSpace(string(b)))
	if err != nil || len(id) != 36 || strings.Trim(id, "0123456789abcdef-") != "" {
		return ""
	}
	if _, err := fs.Stat(root, efiPath); err == nil {
		return id
	}
	f := strings.SplitN(id, "-", 4)
	if len(f) != 4 || len(f[0]) != 8 || len(f[1]) != 4 || len(f[2]) != 4 {
		return ""
	}
	return swap(f[0]) + "-" + swap(f[1]) + "-" + swap(f[2]) + "-" + f[3]
}

// swap reverses the bytes of a number in hex.
func swap(hex string) string {
	var b strings.Builder
	for i := len(hex) - 2; i >= 0; i -= 2 {
		b.WriteString(hex[i : i+2])
	}
	return b.String()
}
