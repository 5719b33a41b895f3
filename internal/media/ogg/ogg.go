// Package ogg reads and writes Opus audio in Ogg: one stream with one or two channels
// (RFC 3533, RFC 6716, RFC 7845). It looks at the framing only and decodes no audio.
// What it reads is bounded and checked, so it may come from anybody.
package ogg

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrFormat is in the chain of errors about input that is not a sound stream of Opus.
var ErrFormat = errors.New("not an Opus stream in Ogg")

// Stream describes an Opus stream by its packets, not by what its headers claim.
type Stream struct {
	Channels int           // 1 or 2; 2 also if only a packet is stereo
	Duration time.Duration // of what is heard
	CodeZero bool          // whether a packet has the framing of code 0

	end int64 // the granule position at which it ends
}

// maxLength bounds a stream. 100 MiB could claim to be months of silence.
const maxLength = 24 * time.Hour

// Inspect reads a stream to its end.
func Inspect(r io.Reader) (Stream, error) {
	return walk(r, func([]byte, int64) error { return nil })
}

// Rewrite copies a stream and changes the framing of packets from code 0 to code 3
// (RFC 6716, 3.2.5): iPhones are reported to play voice messages only with the latter.
// The audio is the same. Comments, which may contain a cover picture or a place, are
// left out.
func Rewrite(w io.Writer, r io.Reader) (Stream, error) {
	out := newWriter(w)
	stream, err := walk(r, func(packet []byte, samples int64) error {
		if samples == 0 {
			return out.header(packet)
		}
		return out.audio(codeThree(packet), samples)
	})
	if err != nil {
		return Stream{}, err
	}
	stream.CodeZero = false
	return stream, out.close(stream.end)
}

// walk calls visit for the head of a stream, with 0 samples, and for each audio packet.
func walk(r io.Reader, visit func(packet []byte, samples int64) error) (Stream, error) {
	in := newReader(r)
	head, err := in.head()
	if err != nil {
		return Stream{}, err
	}
	if err := visit(head.raw, 0); err != nil {
		return Stream{}, err
	}
	stream := Stream{Channels: head.channels}
	var total, last int64
	for {
		packet, err := in.packet()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Stream{}, err
		}
		if last, err = samplesOf(packet); err != nil {
			return Stream{}, err
		}
		if total += last; total > int64(maxLength/time.Second)*sampleRate {
			return Stream{}, fmt.Errorf("%w: it is longer than a day", ErrFormat)
		}
		stream.note(packet[0])
		if err := visit(packet, last); err != nil {
			return Stream{}, err
		}
	}
	if total == 0 {
		return Stream{}, fmt.Errorf("%w: it has no audio", ErrFormat)
	}
	stream.end = end(total, last, in.granule)
	stream.Duration = time.Duration(max(stream.end-head.preSkip, 0)) * time.Second / sampleRate
	return stream, nil
}

// end is where a stream of total samples ends. The last page may say that a part of the
// last packet is not heard (RFC 7845, 4.4); any other claim is ignored.
func end(total, last, granule int64) int64 {
	if granule < total && granule > total-last {
		return granule
	}
	return total
}

// note looks at the first byte of a packet (RFC 6716, 3.1).
func (s *Stream) note(toc byte) {
	s.CodeZero = s.CodeZero || toc&3 == 0
	if toc&4 != 0 {
		s.Channels = 2
	}
}
