package kvp

import (
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode"
)

const (
	reportKey = "PROVISIONING_REPORT"                   // where Azure looks for the report
	helpURL   = "https://aka.ms/linuxprovisioningerror" // where every Linux agent's report of a failure points
	// maxValue is what of a value the host is sure to see whole, in bytes: it holds
	// half of a record's field in UTF-16.
	maxValue = 1022
)

// value is the report: fields of comma-separated values, with bars for commas,
// named as azure-init and cloud-init name them; boot_id is ours. A reason that is
// too long is cut.
func (r *Reporter) value(reason string, now time.Time) string {
	fields := []string{"result=success", "agent=" + r.Agent, "boot_id=" + r.BootID, "pps_type=None"}
	if r.VMID != "" {
		fields = append(fields, "vm_id="+r.VMID)
	}
	fields = append(fields, "timestamp="+now.UTC().Format(time.RFC3339))
	if reason == "" {
		return join(fields)
	}
	fields[0] = "result=error"
	fields = append(slices.Insert(fields, 1, "reason="), "documentation_url="+helpURL)
	for text := []rune(clean(reason)); ; text = text[:len(text)-1] {
		fields[1] = "reason=" + string(text)
		if v := join(fields); len(v) <= maxValue || len(text) == 0 {
			return v
		}
	}
}

// clean replaces control characters, and what is not UTF-8.
func clean(reason string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, reason[:min(len(reason), maxValue)])
}

func join(fields []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma = '|'
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
	text, _ := fs.ReadFile(root, "sys/class/dmi/id/product_uuid")
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(b) != 16 {
		return ""
	}
	if _, err := fs.Stat(root, "sys/firmware/efi"); err != nil {
		slices.Reverse(b[:4])
		slices.Reverse(b[4:6])
		slices.Reverse(b[6:8])
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
