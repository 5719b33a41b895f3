// Package sse writes streams of server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
package sse

import (
	"net/http"
	"strings"
	"time"
)

// ContentType is the media type of a stream.
const ContentType = "text/event-stream"

// Stream writes one response.
type Stream struct {
	w        http.ResponseWriter
	ctl      *http.ResponseController
	patience time.Duration
}

// Open sends the headers of a stream. ok is false if no body may follow. A write ends the stream if the reader takes
// nothing for as long as patience.
func Open(w http.ResponseWriter, r *http.Request, patience time.Duration) (s *Stream, ok bool) {
	s = &Stream{w: w, ctl: http.NewResponseController(w), patience: patience}
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("X-Accel-Buffering", "no") // nginx collects responses otherwise
	w.WriteHeader(http.StatusOK)
	return s, r.Method != http.MethodHead && s.Write()
}

// Event sends one event with a line of data; it is false when the reader has left or takes nothing.
func (s *Stream) Event(name string, line []byte) bool {
	return s.Write([]byte("event: "+name+"\ndata: "), line, []byte("\n\n"))
}

// Lines sends one event with data of several lines.
func (s *Stream) Lines(name, data string) bool {
	return s.Text("event: " + name + "\ndata: " + strings.ReplaceAll(data, "\n", "\ndata: ") + "\n\n")
}

// Text sends text, such as a comment.
func (s *Stream) Text(text string) bool { return s.Write([]byte(text)) }

// Write sends text, given in parts; it is false when the reader has left or takes nothing.
func (s *Stream) Write(parts ...[]byte) bool {
	_ = s.ctl.SetWriteDeadline(time.Now().Add(s.patience)) // not every transport has deadlines
	for _, p := range parts {
		if _, err := s.w.Write(p); err != nil {
			return false
		}
	}
	err := s.ctl.Flush()
	// Over HTTP/2, an expired deadline resets the stream even while nothing is being written.
	_ = s.ctl.SetWriteDeadline(time.Time{})
	return err == nil
}
