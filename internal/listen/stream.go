package listen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// maxEvent limits one line of a stream, in bytes. A text of 64 KiB is at most
// 400 KB of JSON.
const maxEvent = 4 << 20

// message is one block of a stream of server-sent events.
type message struct {
	id   string
	name string
	data []byte // nil: the block is not an event
}

// stream reads server-sent events as the HTML standard defines them.
type stream struct {
	watched

	cancel context.CancelCauseFunc
	lines  *bufio.Scanner
}

func newStream(body io.ReadCloser, watch *time.Timer, cancel context.CancelCauseFunc) *stream {
	s := &stream{watched: watched{ReadCloser: body, watch: watch}, cancel: cancel}
	s.lines = bufio.NewScanner(&s.watched)
	s.lines.Buffer(nil, maxEvent)
	return s
}

// watched runs the watch only while a read is waiting. Handling an event may take
// any time.
type watched struct {
	io.ReadCloser

	watch *time.Timer
	begun bool // something has arrived
}

func (w *watched) Read(b []byte) (int, error) {
	limit, silent := silence, errSilent
	if !w.begun {
		limit, silent = beginning, errBuffered
	}
	w.watch.Reset(limit)
	n, err := w.ReadCloser.Read(b)
	if !w.watch.Stop() && err != nil {
		err = silent
	}
	w.begun = w.begun || n > 0
	return n, err
}

var errEnded = errors.New("the server ended the stream")

// next returns the next block. A block that the end of the stream cuts off is dropped.
func (s *stream) next() (m message, err error) {
	for s.lines.Scan() {
		if len(s.lines.Bytes()) == 0 {
			return m, nil
		}
		m.field(s.lines.Bytes())
	}
	err = s.lines.Err()
	switch {
	case err == nil:
		err = errEnded
	case errors.Is(err, bufio.ErrTooLong):
		err = backoff.Permanent(
			fmt.Errorf("a line of the stream is longer than %d bytes; is --url the address of the API?", maxEvent))
	}
	return message{}, err
}

func (s *stream) close() {
	s.cancel(nil)
	_ = s.Close() // nothing was written
}

// field adds one line to the block. A comment is a field with an empty name.
func (m *message) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		m.id = string(value)
	case "event":
		m.name = string(value)
	case "data":
		if m.data == nil {
			m.data = append([]byte{}, value...) // not nil: empty data is an event too
		} else {
			m.data = append(append(m.data, '\n'), value...)
		}
	}
}
