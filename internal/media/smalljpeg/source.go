package smalljpeg

import (
	"encoding/binary"
	"io"
)

// source reads a file, by bytes and by bits. Once the file has ended, all bytes are 0.
type source struct {
	r     io.Reader
	buf   [16 << 10]byte
	at, n int   // buf[at:n] is not read yet
	ended bool  // something was read beyond the end
	err   error // of the last read: nothing follows

	bits uint64 // the next bits, the first one on top
	have int    // how many of them there are
}

// more tries to have at least n bytes in the buffer.
func (s *source) more(n int) bool {
	copy(s.buf[:], s.buf[s.at:s.n])
	s.at, s.n = 0, s.n-s.at
	for s.n < n && s.err == nil {
		var k int
		k, s.err = s.r.Read(s.buf[s.n:])
		s.n += k
	}
	return s.n >= n
}

func (s *source) byte() byte {
	if s.at == s.n && !s.more(1) {
		s.ended = true
		return 0
	}
	s.at++
	return s.buf[s.at-1]
}

// take returns the next n bytes, until the next call. n is at most maxSegment.
func (s *source) take(n int) ([]byte, error) {
	if n < 0 || n > maxSegment || s.n-s.at < n && !s.more(n) {
		return nil, ErrUnsupported
	}
	s.at += n
	return s.buf[s.at-n : s.at], nil
}

func (s *source) skip(n int) error {
	for n > 0 && (s.at < s.n || s.more(1)) {
		k := min(n, s.n-s.at)
		s.at, n = s.at+k, n-k
	}
	if n != 0 {
		return ErrUnsupported
	}
	return nil
}

// refill adds bits until there are at least 57, or until a marker or the end of the file comes.
func (s *source) refill() {
	if s.n-s.at < 16 {
		s.more(16)
	}
	if s.n-s.at >= 8 {
		word := binary.BigEndian.Uint64(s.buf[s.at:])
		if (^word-0x0101010101010101)&word&0x8080808080808080 == 0 { // no byte is 0xff
			s.bits |= word >> s.have
			taken := (64 - s.have) / 8
			s.at += taken
			s.have += 8 * taken
			return
		}
	}
	s.refillSlowly()
}

// refillSlowly reads byte by byte. In a scan, the byte 0xff is written as 0xff00.
func (s *source) refillSlowly() {
	for s.have <= 56 && s.at < s.n {
		b := s.buf[s.at]
		if b == 0xff {
			if s.at+1 >= s.n || s.buf[s.at+1] != 0 {
				return
			}
			s.at++
		}
		s.at++
		s.bits |= uint64(b) << (56 - s.have)
		s.have += 8
	}
}
