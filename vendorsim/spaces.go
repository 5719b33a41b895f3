package vendorsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Spaces are number spaces: simulated networks that share one set of keys and nothing else.
// The same number in two spaces is two phones with two accounts, and neither sees the other's
// messages. Each space is a [Vendor], which is opened at its first use. Its methods may be called
// from several goroutines.
type Spaces struct {
	opts Options

	mu     sync.Mutex // guards the fields below
	closed bool
	open   map[string]*Vendor
}

// OpenSpaces opens the spaces whose state is in opts.Dir. owners are needed for a directory that a
// single Vendor has written: they name the space of each number ("+15550001111") that was linked
// there. What the directory contains is then divided between their spaces, once; a file goes where
// the account belongs that sent or received it. The caller must
// call [Spaces.Close].
func OpenSpaces(opts Options, owners map[string]string) (*Spaces, error) {
	s := &Spaces{opts: opts, open: make(map[string]*Vendor)}
	if opts.Dir == "" {
		if opts.Keys == nil {
			s.opts.Keys = NewKeys()
		}
		return s, nil
	}
	v := newVendor(opts)
	var values map[string][]byte
	var err error
	if v.journal, values, err = openJournal(opts.Dir); err != nil {
		return nil, err
	}
	if err = v.restorer.loadKeys(values[keysRecord]); err == nil {
		err = divide(v.journal, values, opts.Dir, owners)
	}
	if err := errors.Join(err, v.journal.close()); err != nil {
		return nil, fmt.Errorf("open number spaces: %w", err)
	}
	s.opts.Keys = v.keys
	return s, nil
}

// RootKey returns the public root key of all spaces; see [Vendor.RootKey].
func (s *Spaces) RootKey() [32]byte { return s.opts.Keys.RootKey() }

// ErrBadSpace is returned for a name that cannot be that of a space: letters, digits, "_" and "-".
var ErrBadSpace = errors.New("not the name of a number space")

// Of returns the network of a space, which Close closes.
func (s *Spaces) Of(name string) (*Vendor, error) {
	if !isSpace(name) {
		return nil, ErrBadSpace
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if v := s.open[name]; v != nil {
		return v, nil
	}
	opts := s.opts
	if opts.Dir != "" {
		opts.Dir = spaceDir(opts.Dir, name)
	}
	v, err := Open(opts)
	if err != nil {
		return nil, fmt.Errorf("open number space: %w", err)
	}
	s.open[name] = v
	return v, nil
}

// DialContext connects to the network of a space; see [Vendor.DialContext].
func (s *Spaces) DialContext(ctx context.Context, space string) (net.Conn, error) {
	v, err := s.Of(space)
	if err != nil {
		return nil, err
	}
	return v.DialContext(ctx)
}

// Close closes the networks of all spaces. A second Close does nothing.
func (s *Spaces) Close() error {
	s.mu.Lock()
	open := s.open
	s.open, s.closed = nil, true
	s.mu.Unlock()
	var err error
	for _, v := range open {
		err = errors.Join(err, v.Close())
	}
	return err
}

func isSpace(name string) bool {
	return name != "" && len(name) <= 100 && strings.Trim(name,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

func spaceDir(dir, name string) string { return filepath.Join(dir, "spaces", name) }

// divide moves the records of a directory's journal, except its keys, to the spaces of their owners.
// If it is interrupted, the next call continues: a record is removed after all spaces are written.
func divide(j *journal, values map[string][]byte, dir string, owners map[string]string) error {
	d := division{values: values, owners: make(map[number]string)}
	spaces := make(map[string]bool)
	for num, space := range owners {
		n, err := parseNumber(num)
		if err != nil || !isSpace(space) {
			return fmt.Errorf("owner of a number: %w", errors.Join(err, ErrBadSpace))
		}
		d.owners[n], spaces[space] = space, true
	}
	if len(values) <= 1 {
		return nil // the keys alone
	}
	for space := range spaces {
		if err := d.write(dir, space); err != nil {
			return err
		}
	}
	if !d.complete() {
		return nil // the owners may be those of another database
	}
	if err := d.moveMedia(dir); err != nil {
		return err
	}
	for key := range values {
		if key != keysRecord {
			j.remove(key)
		}
	}
	return j.sync()
}

// division is the journal of a single network, to be divided between number spaces.
type division struct {
	values map[string][]byte
	owners map[number]string
}

// complete reports whether every account has an owner.
func (d division) complete() bool {
	for key := range d.values {
		if n, ok := strings.CutPrefix(key, "account/"); ok && d.owners[number(n)] == "" {
			return false
		}
	}
	return true
}

// write writes the journal of a space, unless the space has one.
func (d division) write(dir, space string) error {
	final := spaceDir(dir, space)
	if _, err := os.Stat(final); err == nil {
		return nil
	}
	partial := final + ".partial" // not the name of a space
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	j, _, err := openJournal(partial)
	if err != nil {
		return err
	}
	for key, value := range d.values {
		if d.belongs(key, value, space) {
			j.put(key, value)
		}
	}
	if err := errors.Join(j.sync(), j.close()); err != nil {
		return err
	}
	return os.Rename(partial, final)
}

// moveMedia moves the files of messages to the spaces of the accounts that they belong to.
func (d division) moveMedia(dir string) error {
	files, err := os.ReadDir(filepath.Join(dir, blobDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, file := range files {
		space := d.owners[ownerOf(file.Name())]
		if space == "" {
			continue
		}
		to := filepath.Join(spaceDir(dir, space), blobDir)
		err = errors.Join(err, os.MkdirAll(to, 0o700),
			os.Rename(filepath.Join(dir, blobDir, file.Name()), filepath.Join(to, file.Name())))
	}
	return err
}

// belongs reports whether a record belongs to a space. A message between the numbers of two spaces
// is shown in neither.
func (d division) belongs(key string, value []byte, space string) bool {
	kind, rest, _ := strings.Cut(key, "/")
	first, second, _ := strings.Cut(rest, "/")
	switch kind {
	case keysRecord, "phone": // phones are derived from their numbers, and count their prekeys
		return true
	case "account", "companion", "prekey", "queue", "state":
		return d.owners[number(first)] == space
	case "session":
		n, _, ok := companionAddress(second)
		return ok && d.owners[n] == space
	case "ledger":
		var e Entry
		return decode(value, &e) && d.ownerOf(e.Account) == space
	case "shown":
		var m Shown
		return decode(value, &m) && d.only(space, number(first), d.ownerOf(m.From), d.ownerOf(m.To))
	}
	return false
}

func decode(value []byte, v any) bool { return json.Unmarshal(value, v) == nil }

func (d division) ownerOf(num string) string { return d.owners[number(strings.TrimPrefix(num, "+"))] }

// only reports whether a space is the only owner among the ends of a message, and may see the phone
// that shows it.
func (d division) only(space string, phone number, from, to string) bool {
	if owner := d.owners[phone]; owner != "" && owner != space {
		return false
	}
	return (from == space || to == space) && (from == "" || from == space) && (to == "" || to == space)
}
