package ogg

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

const (
	pageHeader = 27  // bytes before the table of segments
	maxSegment = 255 // segments of a page, and bytes of a segment

	flagContinued = 1
	flagFirst     = 2
	flagLast      = 4
)

// page is one page of a stream (RFC 3533, 6). Body and segments share a buffer that the
// next page overwrites.
type page struct {
	flags    byte
	granule  int64 // samples up to the end of the last packet that ends here; -1 if none does
	serial   uint32
	sequence uint32
	segments []byte // their lengths
	body     []byte
}

// readPage reads into buf, which has room for the largest page. At the end of the input
// it returns io.EOF.
func readPage(r *bufio.Reader, buf []byte) (page, error) {
	header := buf[:pageHeader]
	if _, err := io.ReadFull(r, header[:1]); err != nil {
		return page{}, err
	}
	if _, err := io.ReadFull(r, header[1:]); err != nil {
		return page{}, fmt.Errorf("%w: %w", ErrFormat, noEOF(err))
	}
	if string(header[:5]) != "OggS\x00" {
		return page{}, fmt.Errorf("%w: a page does not start with OggS", ErrFormat)
	}
	segments := buf[pageHeader : pageHeader+int(header[26])]
	if _, err := io.ReadFull(r, segments); err != nil {
		return page{}, fmt.Errorf("%w: %w", ErrFormat, noEOF(err))
	}
	size := 0
	for _, length := range segments {
		size += int(length)
	}
	start := pageHeader + len(segments)
	body := buf[start : start+size]
	if _, err := io.ReadFull(r, body); err != nil {
		return page{}, fmt.Errorf("%w: %w", ErrFormat, noEOF(err))
	}
	sum := binary.LittleEndian.Uint32(header[22:])
	clear(header[22:26])
	if checksum(buf[:start+size]) != sum {
		return page{}, fmt.Errorf("%w: a page has a wrong checksum", ErrFormat)
	}
	return page{
		flags:    header[5],
		granule:  int64(binary.LittleEndian.Uint64(header[6:])), //nolint:gosec // -1 is stored as its complement
		serial:   binary.LittleEndian.Uint32(header[14:]),
		sequence: binary.LittleEndian.Uint32(header[18:]),
		segments: segments, body: body,
	}, nil
}

// noEOF says that the input ended within a page.
func noEOF(err error) error {
	if err == io.EOF { //nolint:errorlint // io.ReadFull returns it as it is
		return io.ErrUnexpectedEOF
	}
	return err
}

// encode returns the bytes of a page.
func (p page) encode() []byte {
	b := make([]byte, pageHeader, pageHeader+len(p.segments)+len(p.body))
	copy(b, "OggS\x00")
	b[5] = p.flags
	binary.LittleEndian.PutUint64(b[6:], uint64(p.granule)) //nolint:gosec // -1 is stored as its complement
	binary.LittleEndian.PutUint32(b[14:], p.serial)
	binary.LittleEndian.PutUint32(b[18:], p.sequence)
	b[26] = byte(len(p.segments)) //nolint:gosec // at most maxSegment
	b = append(append(b, p.segments...), p.body...)
	binary.LittleEndian.PutUint32(b[22:], checksum(b))
	return b
}

// checksum is the CRC of a page: polynomial 0x04c11db7, not reflected, from 0. The
// standard library has only the reflected form.
func checksum(b []byte) uint32 {
	var sum uint32
	for _, c := range b {
		sum ^= uint32(c) << 24
		for range 8 {
			top := sum >> 31
			sum = sum<<1 ^ top*0x04c11db7
		}
	}
	return sum
}
