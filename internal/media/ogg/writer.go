package ogg

import "io"

const (
	pageSamples = sampleRate // after which a page is full, so that a player may seek
	serial      = 1          // any number will do for a single stream
	comments    = "OpusTags" // and, in pages, a vendor and no comments
	vendor      = "postern"  // of the comments
	headPreSkip = 10         // place of the number in the head
	noComments  = "\x00\x00\x00\x00"
)

// writer puts packets into pages.
type writer struct {
	out      io.Writer
	next     page
	samples  int64 // in the page
	position int64 // at its end
}

func newWriter(w io.Writer) *writer {
	return &writer{out: w, next: page{serial: serial, flags: flagFirst}}
}

// header writes the head and the comments, each as a page of its own.
func (w *writer) header(head []byte) error {
	for _, packet := range []string{string(head), comments} {
		w.add([]byte(packet))
		if err := w.flush(0); err != nil {
			return err
		}
	}
	return nil
}

// audio adds a packet. A full page is written only when another packet follows, so that
// the last page can be marked.
func (w *writer) audio(packet []byte, samples int64) error {
	room := maxSegment - len(w.next.segments)
	if needed := len(packet)/maxSegment + 1; needed > room || w.samples >= pageSamples {
		if err := w.flush(w.position); err != nil {
			return err
		}
	}
	w.add(packet)
	w.samples += samples
	w.position += samples
	return nil
}

// add appends a packet to the page, in segments of 255 bytes and a shorter one.
func (w *writer) add(packet []byte) {
	for range len(packet) / maxSegment {
		w.next.segments = append(w.next.segments, maxSegment)
	}
	w.next.segments = append(w.next.segments, byte(len(packet)%maxSegment))
	w.next.body = append(w.next.body, packet...)
}

// flush writes the page and begins the next one.
func (w *writer) flush(granule int64) error {
	w.next.granule = granule
	_, err := w.out.Write(w.next.encode())
	w.next = page{
		serial: serial, sequence: w.next.sequence + 1,
		segments: w.next.segments[:0], body: w.next.body[:0],
	}
	w.samples = 0
	return err
}

// close writes the last page. End is where the audio ends, which may be within it.
func (w *writer) close(end int64) error {
	w.next.flags |= flagLast
	return w.flush(min(end, w.position))
}
