package vhd

import (
	"encoding/binary"
	"hash/crc32"
)

// The sector sizes that disks are made for. Azure's OS disks have the first.
const (
	sector   = 512
	sector4K = 4096
)

const (
	gptMagic      = "EFI PART"
	gptHeaderSize = 92
	maxGPTEntries = 256 << 10 // bytes; the usual table has 16 KiB
	protective    = 0xee      // the MBR's type of the GPT
)

// partitions looks at the partition table of a disk that is the first size
// bytes of the file. It adds what is wrong, and reports whether there is a
// table by which the disk is whole.
func (c *checker) partitions(size int64) (whole bool, err error) {
	end, isMBR, isProtective := mbr(c.head)
	switch {
	case isProtective && c.hasGPT(sector):
		return c.gpt(size, sector)
	case isProtective && c.hasGPT(sector4K):
		c.warn(sector4K, "the partition table is for a disk with sectors of %d bytes, but Azure's have %d: the VM will not boot", sector4K, sector)
		return c.gpt(size, sector4K)
	case isProtective:
		c.warn(sector, "the MBR announces a GPT, but there is none: the VM will not boot")
	case isMBR:
		return c.ends(0, "MBR", end, size), nil
	case c.hasGPT(sector):
		c.warn(446, "there is a GPT, but no protective MBR: the VM will not boot")
	default:
		c.warn(0, "there is no partition table: a VM cannot boot from the disk, which is right for a data disk only")
	}
	return false, nil
}

// ends reports whether the last partition ends within the disk.
func (c *checker) ends(at int64, table string, end, size int64) bool {
	if end > size {
		c.missing(at, "the last partition of the %s ends at %d, but the disk has only %d bytes", table, end, size)
	}
	return end <= size
}

// mbr returns where the last partition of an MBR ends.
func mbr(head []byte) (end int64, isMBR, isProtective bool) {
	if len(head) < sector || head[510] != 0x55 || head[511] != 0xaa {
		return 0, false, false
	}
	for i := range 4 {
		entry := head[446+16*i:][:16]
		if entry[0]&^0x80 != 0 { // boot code of a file system without partitions
			return 0, false, false
		}
		if entry[4] == 0 {
			continue
		}
		isMBR = true
		isProtective = isProtective || entry[4] == protective
		start, sectors := binary.LittleEndian.Uint32(entry[8:]), binary.LittleEndian.Uint32(entry[12:])
		end = max(end, (int64(start)+int64(sectors))*sector)
	}
	return end, isMBR, isProtective
}

func (c *checker) hasGPT(at int) bool {
	return len(c.head) >= at+sector && string(c.head[at:at+len(gptMagic)]) == gptMagic
}

// gpt checks a GPT of a disk with sectors of that size.
func (c *checker) gpt(size, sectorSize int64) (whole bool, err error) {
	h := c.head[sectorSize:][:sector]
	length := max(gptHeaderSize, min(binary.LittleEndian.Uint32(h[12:]), sector))
	plain := append([]byte(nil), h[:length]...)
	clear(plain[16:20])
	if sum := crc32.ChecksumIEEE(plain); sum != binary.LittleEndian.Uint32(h[16:]) {
		c.warn(sectorSize+16, "the checksum of the GPT header is 0x%08x, want 0x%08x", binary.LittleEndian.Uint32(h[16:]), sum)
		return false, nil
	}
	if at := binary.LittleEndian.Uint64(h[24:]); at != 1 {
		c.warn(sectorSize+24, "the GPT header says that it is sector %d, and not 1: the VM will not boot", at)
		return false, nil
	}
	end, err := c.gptEnd(h, size, sectorSize)
	if err != nil || end == 0 || !c.ends(sectorSize, "GPT", end, size) {
		return false, err
	}
	return true, c.backup(h, size, sectorSize)
}

// gptEnd returns where the last partition of a GPT ends, or 0 with a warning.
func (c *checker) gptEnd(h []byte, size, sectorSize int64) (int64, error) {
	table := binary.LittleEndian.Uint64(h[72:])
	n, each := int64(binary.LittleEndian.Uint32(h[80:])), int64(binary.LittleEndian.Uint32(h[84:]))
	if each < 128 || each > sector4K || n > maxGPTEntries/each || table > uint64(size/sectorSize) {
		c.warn(sectorSize+72, "the GPT has %d entries of %d bytes at sector %d: the VM will not boot", n, each, table)
		return 0, nil
	}
	entries, err := c.read(int64(table)*sectorSize, n*each)
	if err != nil {
		return 0, err
	}
	if sum := crc32.ChecksumIEEE(entries); sum != binary.LittleEndian.Uint32(h[88:]) {
		c.warn(sectorSize+88, "the checksum of the GPT entries is 0x%08x, want 0x%08x: the VM will not boot", binary.LittleEndian.Uint32(h[88:]), sum)
		return 0, nil
	}
	last := uint64(0)
	for i := range n {
		entry := entries[i*each:][:each]
		if [16]byte(entry) != [16]byte{} {
			last = max(last, min(binary.LittleEndian.Uint64(entry[40:]), 1<<50)+1)
		}
	}
	if last == 0 {
		c.warn(sectorSize, "the GPT has no partition: a VM cannot boot from the disk")
	}
	return int64(last) * sectorSize, nil
}

// backup checks that the second GPT header is the disk's last sector. Linux
// boots without it, and sgdisk --move-second-header moves it in a raw disk.
func (c *checker) backup(h []byte, size, sectorSize int64) error {
	const harmless = "Linux boots nevertheless"
	last := size/sectorSize - 1
	at := int64(min(binary.LittleEndian.Uint64(h[32:]), 1<<50))
	if at != last {
		c.warn(sectorSize+32, "the backup GPT header is at sector %d, but the last sector of the disk is %d: %s", at, last, harmless)
		return nil
	}
	b, err := c.read(last*sectorSize, int64(len(gptMagic)))
	if err == nil && string(b) != gptMagic {
		c.warn(last*sectorSize, "there is no backup GPT header at the end of the disk: %s", harmless)
	}
	return err
}
