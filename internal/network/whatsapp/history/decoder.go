package history

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

var errMalformed = errors.New("it is malformed")

// decoder reads the fields of encoded messages from a stream.
type decoder struct {
	r   *bufio.Reader
	pos int64 // bytes that were read
}

// field is a field of a message.
type field struct {
	number protowire.Number
	value  uint64 // of a number
	size   int64  // bytes that follow; 0 for a number
	end    int64  // where they end
}

// ReadByte reads a byte of a number.
func (d *decoder) ReadByte() (byte, error) {
	b, err := d.r.ReadByte()
	if err == nil {
		d.pos++
	}
	return b, err
}

// fields passes each field of a message to visit, until its end; -1 is that of the stream. What visit does not read of a
// field is skipped.
func (d *decoder) fields(end int64, visit func(field) error) error {
	for d.pos != end {
		f, err := d.next(end)
		if errors.Is(err, io.EOF) && end < 0 {
			return nil
		}
		if err == nil {
			err = visit(f)
		}
		if err == nil && f.end > d.pos {
			err = d.skip(f.end - d.pos)
		}
		if err != nil {
			return whole(err)
		}
	}
	return nil
}

// nested passes each field of a field that is a message to visit.
func (d *decoder) nested(f field, visit func(field) error) error {
	if f.end == 0 {
		return errMalformed // a number
	}
	return d.fields(f.end, visit)
}

// whole returns err; the end of the stream within a message is unexpected.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// next reads the beginning of a field. The error is io.EOF if there is none.
func (d *decoder) next(end int64) (f field, err error) {
	tag, err := binary.ReadUvarint(d)
	if err != nil {
		return f, err
	}
	number, kind := protowire.DecodeTag(tag)
	if f.number = number; number < 1 {
		return f, errMalformed
	}
	switch kind {
	case protowire.VarintType:
		f.value, err = binary.ReadUvarint(d)
	case protowire.Fixed32Type:
		err = d.skip(4)
	case protowire.Fixed64Type:
		err = d.skip(8)
	case protowire.BytesType:
		f.size, f.end, err = d.length()
	default: // groups, which nobody uses
		err = errMalformed
	}
	if err == nil && end >= 0 && max(f.end, d.pos) > end {
		err = errMalformed
	}
	return f, whole(err)
}

func (d *decoder) length() (size, end int64, err error) {
	n, err := binary.ReadUvarint(d)
	if err == nil && n > 1<<40 {
		err = errMalformed
	}
	return int64(n), d.pos + int64(n), err //nolint:gosec // compared
}

func (d *decoder) skip(n int64) error {
	skipped, err := io.CopyN(io.Discard, d.r, n)
	d.pos += skipped
	return err
}

// bytes reads a field, whose size the caller has checked.
func (d *decoder) bytes(f field) ([]byte, error) {
	b := make([]byte, f.size)
	n, err := io.ReadFull(d.r, b)
	d.pos += int64(n)
	return b, err
}

// small reads a field of at most maxSmall bytes. Of a larger one it returns nil.
func (d *decoder) small(f field) ([]byte, error) {
	if f.size > maxSmall || f.end == 0 {
		return nil, nil
	}
	return d.bytes(f)
}
