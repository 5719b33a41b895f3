// Package blob stores the bytes of media, in a local directory or in storage that
// speaks the protocol of Amazon S3. It holds one copy per content and workspace: a blob
// is named by its workspace and the SHA-256 of its content. It knows nothing of messages;
// its callers remember which blobs are in use.
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"strings"
	"time"

	"postern/internal/postern"
)

// Store keeps blobs. It is safe for concurrent use, also by several processes that share
// the same directory or bucket. A missing blob is an error that matches fs.ErrNotExist.
type Store interface {
	// Put reads r to its end and stores what it read, with its size in bytes. Memory does
	// not grow with the content. If r or the storage fails, nothing is stored. A content
	// that is there already becomes as young as a new one, so that a sweep keeps it.
	Put(ctx context.Context, ws postern.WorkspaceID, r io.Reader) (Name, int64, error)
	// Create creates an empty file for Adopt. The caller closes it, and removes it unless it was
	// adopted.
	Create() (*os.File, error)
	// Adopt stores the whole content of a file from Create, as Put does, but without another
	// copy if it can. The name has the hash that [Sum] returns. The file must not be written any
	// more; it can still be read.
	Adopt(ctx context.Context, name Name, f *os.File) error
	// Open reads length bytes from offset; fewer if the blob ends before, and all that
	// follow if length is negative. The reader ends with an error if the blob cannot be
	// read to the end of the range. The caller closes it.
	Open(ctx context.Context, name Name, offset, length int64) (io.ReadCloser, error)
	// Stat describes one blob.
	Stat(ctx context.Context, name Name) (Info, error)
	// Delete removes a blob. It is no error if the blob is missing. Readers that are open
	// either read to the end or fail; they never end early without an error.
	Delete(ctx context.Context, name Name) error
	// Walk goes through all blobs of all workspaces, in no particular order. After an
	// error it ends. Foreign files and objects are skipped.
	Walk(ctx context.Context) iter.Seq2[Info, error]
	// Tidy removes what writes that were interrupted before that time left behind.
	Tidy(ctx context.Context, before time.Time) error
	// Check returns nil if blobs can be stored now.
	Check(ctx context.Context) error
	// Mark returns the mark by which servers recognize the storage. One without a mark gets the fresh one,
	// unless that is "". Of several servers that give it one at the same time, one succeeds.
	Mark(ctx context.Context, fresh string) (string, error)
}

// markName is the name of the file or object with the storage's mark.
const markName = "storage.id"

// maxMark is the most bytes that are read of a mark.
const maxMark = 256

// Hash is the SHA-256 of a blob's content.
type Hash [sha256.Size]byte

// String returns 64 lower-case hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads what String returns, and nothing else.
func ParseHash(text string) (Hash, error) {
	var h Hash
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(h) || strings.ToLower(text) != text {
		return h, errors.New("a hash is 64 lower-case hex digits")
	}
	copy(h[:], b)
	return h, nil
}

// Name names a blob.
type Name struct {
	Workspace postern.WorkspaceID
	Hash      Hash
}

// Info describes a stored blob.
type Info struct {
	Name
	Size     int64     // bytes
	Modified time.Time // of the last Put, by the clock of the storage
}

const maxWorkspace = 64 // bytes of a workspace's id; real ones have 29

// key is the path of a blob: the workspace, two digits of the hash, the hash. The two
// digits keep directories small.
func (n Name) key() (string, error) {
	if err := checkWorkspace(n.Workspace); err != nil {
		return "", err
	}
	hash := n.Hash.String()
	return string(n.Workspace) + "/" + hash[:2] + "/" + hash, nil
}

// checkWorkspace refuses ids that could name anything but a directory of their own. Real
// ones consist of ws_ and letters and digits.
func checkWorkspace(ws postern.WorkspaceID) error {
	rest, ok := strings.CutPrefix(string(ws), "ws_")
	foreign := strings.Trim(rest, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	if !ok || rest == "" || foreign != "" || len(ws) > maxWorkspace {
		return errors.New("this is not the id of a workspace")
	}
	return nil
}

// parseKey reads what key returns. False means that the path is not a blob's.
func parseKey(key string) (Name, bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return Name{}, false
	}
	hash, err := ParseHash(parts[2])
	name := Name{Workspace: postern.WorkspaceID(parts[0]), Hash: hash}
	if err != nil || checkWorkspace(name.Workspace) != nil || parts[1] != parts[2][:2] {
		return Name{}, false
	}
	return name, true
}

// copyHashed copies r to w in small steps until r ends or ctx does. It returns the
// SHA-256 and the number of bytes.
func copyHashed(ctx context.Context, w io.Writer, r io.Reader) (Hash, int64, error) {
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(w, hash), contextReader{ctx, r})
	if err != nil {
		return Hash{}, 0, fmt.Errorf("copy content: %w", err)
	}
	return Hash(hash.Sum(nil)), size, nil
}

// Sum returns the SHA-256 of a file, and its size in bytes.
func Sum(ctx context.Context, f *os.File) (Hash, int64, error) {
	return copyHashed(ctx, io.Discard, io.NewSectionReader(f, 0, math.MaxInt64))
}

// contextReader ends with the error of its context. It lives as long as one copy.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
