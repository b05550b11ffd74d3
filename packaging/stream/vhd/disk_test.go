package vhd_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"testing"
)

// A gpt describes the partition table of a disk to make.
type gpt struct {
	size    int64 // of the disk
	sector  int64 // 0: 512
	end     int64 // of the one partition; 0: as far as it can go
	backup  int64 // where the header says the backup is, in sectors; 0: the last one
	entries int64 // sectors before the entries; 0: 2

	change func(entry []byte) // spoils the one entry; may be nil
}

// head returns the first sectors of the disk: protective MBR, header, entries.
func (g gpt) head() []byte {
	if g.sector == 0 {
		g.sector = 512
	}
	last := g.size/g.sector - 1
	if g.backup == 0 {
		g.backup = last
	}
	if g.end == 0 {
		g.end = (last - 32) * g.sector
	}
	if g.entries == 0 {
		g.entries = 2
	}
	b := make([]byte, g.entries*g.sector+128*128)
	copy(b, mbr(entry{kind: 0xee, start: 1, sectors: 0xffffffff}))
	e := b[g.entries*g.sector:]
	copy(e, "\x28\x73\x2a\xc1\x1f\xf8\xd2\x11\xba\x4b\x00\xa0\xc9\x3e\xc9\x3b")
	copy(e[16:], "a unique name...")
	binary.LittleEndian.PutUint64(e[32:], 40)
	binary.LittleEndian.PutUint64(e[40:], uint64(g.end/g.sector-1))
	if g.change != nil {
		g.change(e)
	}
	copy(b[g.sector:], g.header(1, g.backup, g.entries, e))
	return b
}

func (g gpt) header(at, other, entries int64, table []byte) []byte {
	h := make([]byte, 92)
	copy(h, "EFI PART\x00\x00\x01\x00\x5c\x00\x00\x00")
	for off, v := range map[int]int64{24: at, 32: other, 40: 34, 48: g.size/512 - 34, 72: entries} {
		binary.LittleEndian.PutUint64(h[off:], uint64(v))
	}
	for off, v := range map[int]uint32{80: 128, 84: 128, 88: crc32.ChecksumIEEE(table[:128*128])} {
		binary.LittleEndian.PutUint32(h[off:], v)
	}
	binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h))
	return h
}

// backupSector is what the last sector of a disk of that size begins with.
func backupSector(size int64) []byte {
	g := gpt{size: size}
	last := size/512 - 1
	return g.header(last, 1, last-32, g.head()[1024:])
}

// An entry is one of an MBR.
type entry struct {
	kind           byte
	start, sectors uint32
}

func mbr(entries ...entry) []byte {
	b := make([]byte, 512)
	b[510], b[511] = 0x55, 0xaa
	for i, e := range entries {
		p := b[446+16*i:]
		p[4] = e.kind
		binary.LittleEndian.PutUint32(p[8:], e.start)
		binary.LittleEndian.PutUint32(p[12:], e.sectors)
	}
	return b
}

// writeDisk makes a raw disk with a GPT, and content from its first partition
// to its last byte.
func writeDisk(t *testing.T, name string, size int64) []byte {
	t.Helper()
	b := make([]byte, size)
	for at := int64(40 * 512); at < size; at += size / 7 {
		copy(b[at:], "content of the disk")
	}
	copy(b[size-40*512:], "the end of the last partition")
	sectors := size / 512 * 512
	copy(b, gpt{size: sectors}.head())
	copy(b[sectors-512:sectors], backupSector(sectors))
	for i := sectors; i < size; i++ {
		b[i] = 'x' // not even a sector
	}
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at := int64(0); at < size; at += 4096 { // with holes
		block := b[at:min(at+4096, size)]
		if bytes.Count(block, []byte{0}) == len(block) {
			continue
		}
		if _, err := f.WriteAt(block, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return b
}
