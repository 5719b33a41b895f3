package media_test

import (
	"bytes"
	"encoding/binary"
	"time"
)

// silentOgg is Opus in Ogg that lasts as long as it says, in packets of 120 ms that take
// two bytes each.
func silentOgg(length time.Duration) []byte {
	var b bytes.Buffer
	head := append([]byte("OpusHead"), 1, 1, 0, 0, 0x80, 0x3e, 0, 0, 0, 0, 0)
	b.Write(oggPage(0, 0, [][]byte{head}))
	b.Write(oggPage(1, 0, [][]byte{append([]byte("OpusTags"), make([]byte, 8)...)}))
	packets := make([][]byte, 200)
	for i := range packets {
		packets[i] = []byte{3<<3 | 3, 2} // two empty frames of 60 ms
	}
	number := uint32(2)
	for done := time.Duration(0); done < length; done += 200 * 120 * time.Millisecond {
		b.Write(oggPage(number, int64(number)*200*5760, packets))
		number++
	}
	return b.Bytes()
}

func oggPage(sequence uint32, granule int64, packets [][]byte) []byte {
	page := append([]byte("OggS"), make([]byte, 23)...)
	binary.LittleEndian.PutUint64(page[6:], uint64(granule))
	binary.LittleEndian.PutUint32(page[18:], sequence)
	page[26] = byte(len(packets))
	for _, packet := range packets {
		page = append(page, byte(len(packet)))
	}
	for _, packet := range packets {
		page = append(page, packet...)
	}
	var sum uint32
	for _, c := range page {
		sum ^= uint32(c) << 24
		for range 8 {
			sum = sum<<1 ^ (sum>>31)*0x04c11db7
		}
	}
	binary.LittleEndian.PutUint32(page[22:], sum)
	return page
}
