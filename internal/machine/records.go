package machine

import (
	"errors"
	"io/fs"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
)

// readRecords reads the records of this boot.
func readRecords(root fs.FS, dir string, links []Link) Records {
	r := Records{Links: map[string]Seen[boot.Link]{}}
	r.BootID, r.BootErr = boot.ID(root)
	store := boot.Store{Dir: dir, BootID: r.BootID}
	r.CheckIn.V, r.CheckIn.Err = store.CheckIn()
	for _, l := range links {
		if rec, err := store.Link(l.Index, l.Name); !errors.Is(err, fs.ErrNotExist) {
			r.Links[l.Name] = Seen[boot.Link]{rec, err}
		}
	}
	return r
}
