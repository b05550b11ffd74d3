package lab_test

import (
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

func TestTreeOfUnknownSuite(t *testing.T) {
	const want = `lab: no suite "sid": want one of bookworm, trixie, testing`
	if _, err := lab.Tree(t.Context(), "sid"); err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}
