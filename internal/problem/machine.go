package problem

import (
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"time"
)

// machineFails tells whether an error is due to the machine, such as a full disk, and not to the request or to a
// mistake of ours: the same request may succeed later.
func machineFails(err error) bool {
	for _, no := range []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE,
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// unavailableGap is how often the log says at most that a request was refused because the server cannot do its
// work: each request has a line of its own anyway.
const unavailableGap = 10 * time.Second

// seldom says the same at most once in a while, so that a fault does not fill the log.
type seldom struct {
	mu   sync.Mutex
	next time.Time
	kept int // how often it was not said since the last time
}

// warn logs a message with an error, or counts it.
func (s *seldom) warn(log *slog.Logger, msg, requestID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.next) {
		s.kept++
		return
	}
	log.Warn(msg, "request_id", requestID, "error", err, "others_before", s.kept)
	s.next, s.kept = now.Add(unavailableGap), 0
}
