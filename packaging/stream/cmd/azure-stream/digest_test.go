package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gib = 1 << 30
		var terminal bytes.Buffer
		p := &progress{w: &terminal, size: 8 * gib, start: time.Now(), last: time.Now()}
		chunk := make([]byte, gib/2)
		for range 4 {
			time.Sleep(time.Second / 2)
			if n, err := p.Write(chunk); n != len(chunk) || err != nil {
				t.Fatal(n, err)
			}
		}
		p.done()
		const want = "\rsha256: 12 % of 8.0 GiB, 7s left                            " +
			"\rsha256: 25 % of 8.0 GiB, 6s left                            " +
			"\r                                                            \r"
		if got := terminal.String(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

func TestProgressOnATerminalOnly(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if p := newProgress(f, 1); p.w != nil {
		t.Error("progress would go to a file")
	}
}
