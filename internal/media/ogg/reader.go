package ogg

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

const (
	maxPage   = pageHeader + maxSegment + maxSegment*maxSegment // bytes
	maxPacket = 1 << 20                                         // bytes; comments may contain a picture
)

// reader takes the packets of one stream out of its pages.
type reader struct {
	in      *bufio.Reader
	buf     []byte // of the page
	page    page
	started bool
	granule int64  // the last that a page named; -1 at first
	partial []byte // of the packet that is being read
	open    bool   // the packet goes on in the next page
}

func newReader(r io.Reader) *reader {
	return &reader{in: bufio.NewReader(r), buf: make([]byte, maxPage), granule: -1}
}

// head reads the two packets at the start of a stream. The second has comments, which
// nobody needs.
func (r *reader) head() (head, error) {
	packet, err := r.packet()
	if err != nil {
		return head{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	h, err := parseHead(packet)
	if err != nil {
		return head{}, err
	}
	if _, err := r.packet(); err != nil {
		return head{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return h, nil
}

// packet returns the next packet, which the next call overwrites. After the last one it
// returns io.EOF.
func (r *reader) packet() ([]byte, error) {
	r.partial = r.partial[:0]
	for {
		for len(r.page.segments) > 0 {
			length := r.page.segments[0]
			r.partial = append(r.partial, r.page.body[:length]...)
			r.page.segments, r.page.body = r.page.segments[1:], r.page.body[length:]
			if r.open = length == maxSegment; !r.open {
				return r.partial, nil
			}
			if len(r.partial) > maxPacket {
				return nil, fmt.Errorf("%w: a packet is too long", ErrFormat)
			}
		}
		if err := r.turn(); err != nil {
			return nil, err
		}
	}
}

// turn reads the next page. It must continue the packet exactly if one is open.
func (r *reader) turn() error {
	next, err := readPage(r.in, r.buf)
	if errors.Is(err, io.EOF) && r.open {
		return fmt.Errorf("%w: %w", ErrFormat, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return err
	}
	if r.started && next.serial != r.page.serial {
		return fmt.Errorf("%w: it has several streams", ErrFormat)
	}
	if continued := next.flags&flagContinued != 0; continued != r.open {
		return fmt.Errorf("%w: a page is missing", ErrFormat)
	}
	if next.granule != -1 {
		r.granule = next.granule
	}
	r.page, r.started = next, true
	return nil
}
