package kvp

import (
	"encoding/csv"
	"io/fs"
	"strings"
	"time"
)

const (
	// reportKey is the key under which Azure looks for the report.
	reportKey = "PROVISIONING_REPORT"
	// helpURL is where every Linux agent's report of a failure points.
	helpURL = "https://aka.ms/linuxprovisioningerror"
	// maxValue is what of a value the host is sure to see whole, in bytes: it holds
	// half of a record's field in UTF-16.
	maxValue = 1022
)

// value is the report: fields of comma-separated values, with bars for commas,
// named as azure-init and cloud-init name them; boot_id is ours. A reason that is
// too long is cut.
func (r *Reporter) value(reason string, now time.Time) string {
	tail := []string{"agent=" + r.Agent, "boot_id=" + r.BootID, "pps_type=None"}
	if r.VMID != nil {
		if id := r.VMID(); id != "" {
			tail = append(tail, "vm_id="+id)
		}
	}
	tail = append(tail, "timestamp="+now.UTC().Format(time.RFC3339))
	if reason == "" {
		return join(append([]string{"result=success"}, tail...))
	}
	tail = append(tail, "documentation_url="+helpURL)
	reason = reason[:min(len(reason), maxValue)]
	for text := []rune(strings.ToValidUTF8(reason, "\ufffd")); ; text = text[:len(text)-1] {
		v := join(append([]string{"result=error", "reason=" + string(text)}, tail...))
		if len(v) <= maxValue || len(text) == 0 {
			return v
		}
	}
}

func join(fields []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma = '|'
	for i, f := range fields {
		fields[i] = strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f {
				return ' '
			}
			return c
		}, f)
	}
	_ = w.Write(fields) // to a strings.Builder
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// parse returns the fields of a report by their names, of any agent.
func parse(value string) map[string]string {
	r := csv.NewReader(strings.NewReader(value))
	r.Comma, r.LazyQuotes = '|', true
	record, _ := r.Read() // no report has no fields
	fields := map[string]string{}
	for _, f := range record {
		name, v, _ := strings.Cut(f, "=")
		fields[name] = v
	}
	return fields
}

// VMID returns the ID that Azure knows the virtual machine by, "" if it cannot
// be read: only root can. A machine without EFI (generation 1) shows the first
// three fields of the firmware's UUID in the other byte order. root is the file
// system from / on.
func VMID(root fs.FS) string {
	b, err := fs.ReadFile(root, "sys/class/dmi/id/product_uuid")
	id := strings.ToLower(strings.TrimSpace(string(b)))
	if err != nil || len(id) != 36 || strings.Trim(id, "0123456789abcdef-") != "" || strings.Count(id, "-") != 4 ||
		id[8] != '-' || id[13] != '-' || id[18] != '-' {
		return ""
	}
	if _, err := fs.Stat(root, "sys/firmware/efi"); err == nil {
		return id
	}
	return id[6:8] + id[4:6] + id[2:4] + id[:2] + "-" + id[11:13] + id[9:11] + "-" + id[16:18] + id[14:16] + id[18:]
}
