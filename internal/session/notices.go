package session

import (
	"errors"
	"sync"
)

// notices keeps what is read of groups from replacing what newer notices say about them: an answer of the network may
// be older than a notice that arrives while it is read or recorded. The zero value is ready for use.
type notices struct {
	mu      sync.Mutex
	arrived int
}

// record records a notice, by calling f.
func (n *notices) record(f func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.arrived++
	return f()
}

// read calls get, which reads groups, and then put, which records them. If notices arrive between the two, it begins
// again; if they do so at every try, put is not called, and the error is errNoticed.
func (n *notices) read(get, put func() error) error {
	for range readTries {
		before := n.count()
		if err := get(); err != nil {
			return err
		}
		if recorded, err := n.recordIf(before, put); recorded {
			return err
		}
	}
	return errNoticed
}

const readTries = 3

var errNoticed = errors.New("notices about groups kept arriving while groups were read")

func (n *notices) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.arrived
}

// recordIf calls put unless more notices have arrived than before.
func (n *notices) recordIf(before int, put func() error) (recorded bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.arrived != before {
		return false, nil
	}
	return true, put()
}
