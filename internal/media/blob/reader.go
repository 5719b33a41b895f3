package blob

import (
	"context"
	"errors"
	"io"

	"postern/internal/postern"
)

// Reader reads a blob from any place, for http.ServeContent. Nothing is opened before
// the first Read; a Seek to another place opens the blob again there.
type Reader struct {
	open   func(offset int64) (io.ReadCloser, error)
	size   int64
	offset int64
	body   io.ReadCloser // at offset; nil until it is needed
}

// NewReader creates a Reader of a blob of that many bytes. The context must last as long
// as the Reader. The caller closes it.
func NewReader(ctx context.Context, s Store, name Name, size int64) *Reader {
	return &Reader{size: size, open: func(offset int64) (io.ReadCloser, error) {
		return s.Open(ctx, name, offset, size-offset)
	}}
}

// Read reads on. A blob that is shorter than its size ends with io.ErrUnexpectedEOF.
func (r *Reader) Read(p []byte) (int, error) {
	if r.offset >= r.size {
		return 0, io.EOF
	}
	if r.body == nil {
		body, err := r.open(r.offset)
		if err != nil {
			return 0, err
		}
		r.body = body
	}
	n, err := r.body.Read(p)
	r.offset += int64(n)
	if errors.Is(err, io.EOF) && r.offset < r.size {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Seek moves to another place. It reads nothing.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errNegativeOffset
	}
	if offset == r.offset {
		return offset, nil
	}
	r.offset = offset
	return offset, r.Close()
}

// Close ends reading. A Read after it opens the blob again.
func (r *Reader) Close() error {
	if r.body == nil {
		return nil
	}
	body := r.body
	r.body = nil
	return body.Close()
}

// Limit returns a reader that fails with PayloadTooLarge when r has more than maxBytes.
func Limit(r io.Reader, maxBytes int64) io.Reader {
	return LimitTo(r, maxBytes, postern.Errorf(postern.PayloadTooLarge, "a file may have at most %d bytes", maxBytes))
}

// LimitTo returns a reader that fails with beyond when r has more than maxBytes.
func LimitTo(r io.Reader, maxBytes int64, beyond error) io.Reader {
	return &limited{r: r, left: maxBytes, beyond: beyond}
}

type limited struct {
	r      io.Reader
	left   int64
	beyond error
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		return int(l.left), l.beyond
	}
	l.left -= int64(n)
	return n, err
}
