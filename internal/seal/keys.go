package seal

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// KeySize is the length of a secret key in bytes.
const KeySize = 32

// KeyID names a secret key: eight hexadecimal digits that are derived from it.
type KeyID string

// bytes returns the id as it stands in sealed values.
func (id KeyID) bytes() [keyIDSize]byte {
	var b [keyIDSize]byte
	_, _ = hex.Decode(b[:], []byte(id)) // made by keyIDOf
	return b
}

const keyIDSize = 4

func keyIDOf(b [keyIDSize]byte) KeyID { return KeyID(hex.EncodeToString(b[:])) }

// Keys are the secret keys of a key file, in its order. The first one is to encrypt, and all of them decrypt.
type Keys struct{ list []*key }

// ParseKeys reads a key file: the base64 of 32 random bytes in each line. What follows a # is a comment.
func ParseKeys(text string) (k Keys, err error) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != KeySize {
			return k, fmt.Errorf("each line must contain the base64 of %d bytes", KeySize)
		}
		next, err := newKey(raw)
		if err != nil {
			return k, err
		}
		if !k.Has(next.id) {
			k.list = append(k.list, next)
		}
	}
	if len(k.list) == 0 {
		return k, fmt.Errorf("it must contain the base64 of %d bytes", KeySize)
	}
	return k, nil
}

// IDs returns the ids in the order of the file.
func (k Keys) IDs() []KeyID {
	ids := make([]KeyID, len(k.list))
	for i, one := range k.list {
		ids[i] = one.id
	}
	return ids
}

// Has tells whether a key is in the file.
func (k Keys) Has(id KeyID) bool { return slices.Contains(k.IDs(), id) }

// Checked returns the key that has a check; see [Box.Check].
func (k Keys) Checked(check string) (id KeyID, ok bool) {
	for _, one := range k.list {
		if one.check() == check {
			return one.id, true
		}
	}
	return "", false
}

// LoadKeys reads a key file.
func LoadKeys(path string) (Keys, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return Keys{}, fmt.Errorf("read the secret key: %w", err)
	}
	k, err := ParseKeys(string(text))
	if err != nil {
		err = fmt.Errorf("the secret key file %s is not valid: %w", path, err)
	}
	return k, err
}

// LoadOrMakeKeys reads a key file. If it does not exist, it creates one with one key that only its
// owner can read.
func LoadOrMakeKeys(path string) (Keys, error) {
	k, err := LoadKeys(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := replaceFile(path, randomKey()+"\n"); err != nil {
		return k, fmt.Errorf("write the secret key: %w", err)
	}
	return LoadKeys(path)
}

func randomKey() string {
	raw := make([]byte, KeySize)
	_, _ = rand.Read(raw) // never fails (Go 1.24)
	return base64.StdEncoding.EncodeToString(raw)
}

// AddKey puts a new key in the first line of a key file, with a comment behind it, and returns its id.
func AddKey(path, comment string) (KeyID, error) {
	before, err := LoadKeys(path)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return "", err
	}
	line := randomKey()
	made, err := ParseKeys(line)
	if err != nil {
		return "", err
	}
	id := made.IDs()[0]
	if before.Has(id) {
		return "", errors.New("the id of the new key is taken; try again")
	}
	return id, replaceFile(path, fmt.Sprintf("%s # %s %s\n%s", line, id, comment, text))
}

// DropKeys removes keys from a key file.
func DropKeys(path string, ids ...KeyID) error {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return err
	}
	var left strings.Builder
	for line := range strings.Lines(string(text)) {
		if k, err := ParseKeys(line); err == nil && slices.Contains(ids, k.IDs()[0]) {
			continue
		}
		left.WriteString(line)
	}
	if _, err := ParseKeys(left.String()); err != nil {
		return errors.New("no key would be left")
	}
	return replaceFile(path, left.String())
}

// replaceFile makes or replaces a file so that it has the old content or the new one, even after a power
// failure: losing a key would make everything encrypted with it unreadable. The file keeps its owner and its
// mode; a new one can be read only by its owner. A symbolic link stays one.
func replaceFile(path, text string) error {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(text)
	if err == nil {
		err = likeBefore(tmp, path)
	}
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// likeBefore gives a file the owner and the mode of the one that it replaces.
func likeBefore(f *os.File, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if was, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
			return fmt.Errorf("keep the owner of %s: %w", path, err)
		}
	}
	return f.Chmod(info.Mode().Perm())
}
