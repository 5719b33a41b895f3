package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"postern/vendorsim"
)

// Ask is what the driver records before it asks the gateway to send a message. Each body
// is unique, so that the ledgers can be matched by it.
type Ask struct {
	Key    string `json:"key"` // Idempotency-Key
	Device string `json:"device"`
	To     string `json:"to"`
	Body   string `json:"body"`
	File   string `json:"file,omitempty"`   // SHA-256 of the file, as Sum returns it; "" for a text
	Poll   bool   `json:"poll,omitempty"`   // a poll, whose question is the body
	SendAt string `json:"sendAt,omitempty"` // RFC 3339; "" for at once
	Cancel bool   `json:"cancel,omitempty"` // it may be canceled
}

// Told is what the driver records about an answer. Status is 0 if the connection broke;
// the outcome is unknown then.
type Told struct {
	Key       string `json:"key"`
	Status    int    `json:"status"`
	MessageID string `json:"messageId,omitempty"`
}

// Act is what the driver records each time that it asks the gateway to act on a message. Of the
// acts on a message, no two are the same.
type Act struct {
	Message string `json:"message"`         // its id
	Kind    string `json:"kind"`            // reaction, edit, revoke, vote or star, as the vendor's ledger names them
	Text    string `json:"text"`            // the emoji, the new text, the option, or "1" for a star; "" for a revoke
	Phone   bool   `json:"phone,omitempty"` // the owner of the account did it on the phone
}

// Change is something that changes in a group.
type Change struct {
	Chat string `json:"chat"`
	Kind string `json:"kind"` // subject, add or remove
	What string `json:"what"` // the new subject, of which no two are the same, or the number of the member
}

// Named says that the owner of an account gave somebody a name, in the address book of the phone.
type Named struct {
	Account string `json:"account"` // its number
	Number  string `json:"number"`
	Name    string `json:"name"`
}

// Call is one line of the driver's ledger.
type Call struct {
	Ask  *Ask  `json:"ask,omitempty"`
	Told *Told `json:"told,omitempty"`
	Act  *Act  `json:"act,omitempty"`
	// Acted is an act that the gateway has accepted.
	Acted *Act `json:"acted,omitempty"`
	// Change is one that the gateway or a member was asked to make, and Changed one that was made.
	Change  *Change `json:"change,omitempty"`
	Changed *Change `json:"changed,omitempty"`
	// Named is a name that was given.
	Named *Named `json:"named,omitempty"`
	// Canceled is the id of a message that the gateway said it has canceled.
	Canceled string `json:"canceled,omitempty"`
}

// Post is what the receiver records about a webhook before it answers.
type Post struct {
	EventID   string `json:"eventId"`
	Type      string `json:"type"`
	MessageID string `json:"messageId,omitempty"`
	SHA256    string `json:"sha256"` // of the body
	Attempt   string `json:"attempt"`
	Answer    int    `json:"answer"`          // 0: the connection was cut off
	Wrong     string `json:"wrong,omitempty"` // why the signature or the format is invalid

	Endpoint string `json:"endpoint,omitempty"` // if there are several
	Life     int    `json:"life,omitempty"`     // how often the gateway had been killed before, if that is counted
}

// Entry is one message in the vendor's ledger.
type Entry = vendorsim.Entry

// Journal is a file of JSON lines. A line is on disk when Write returns. Concurrent
// writers share an fsync.
type Journal struct {
	file *os.File

	mu      sync.Mutex // guards what follows
	settled *sync.Cond // a round of writing has ended
	buf     []byte
	end     int // lines given
	durable int // of those, on the disk
	writing bool
	err     error
}

// OpenJournal creates a journal, or continues an existing one.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the harness names the file
	if err != nil {
		return nil, err
	}
	j := &Journal{file: f}
	j.settled = sync.NewCond(&j.mu)
	return j, nil
}

// Write appends a line and returns when it is on disk.
func (j *Journal) Write(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode a line: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.buf = append(append(j.buf, text...), '\n')
	j.end++
	for mine := j.end; j.durable < mine && j.err == nil; {
		if j.writing {
			j.settled.Wait()
			continue
		}
		j.round()
	}
	return j.err
}

// round writes all lines so far. The caller holds mu, which round releases while it waits
// for the disk.
func (j *Journal) round() {
	buf, upTo := j.buf, j.end
	j.buf, j.writing = nil, true
	j.mu.Unlock()
	_, err := j.file.Write(buf)
	err = errors.Join(err, j.file.Sync())
	j.mu.Lock()
	j.writing, j.durable = false, upTo
	j.err = errors.Join(j.err, err)
	j.settled.Broadcast()
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// ReadJournal reads all lines of a journal.
func ReadJournal[T any](path string) (lines []T, err error) {
	f, err := os.Open(path) //nolint:gosec // the harness names the file
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	for {
		var line T
		err := d.Decode(&line)
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(lines)+1, err)
		}
		lines = append(lines, line)
	}
}
