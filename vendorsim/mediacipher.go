package vendorsim

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"go.mau.fi/whatsmeow/util/cbcutil"
)

// ErrMediaDamaged is returned for a file that is not the one its message describes: its size, its
// MAC or one of its hashes is another.
var ErrMediaDamaged = errors.New("file is not the one that the message describes")

const (
	// macSize is how many bytes of the HMAC end an encrypted file.
	macSize = 10
	// chunk is how many bytes are decrypted at a time, a multiple of the size of a block.
	chunk = 32 << 10
)

// The classes of files, each with the label from which the keys of its files are derived.
const (
	classImage    = "image"
	classVideo    = "video"
	classAudio    = "audio"
	classDocument = "document"
	classState    = "state"   // a snapshot of the app state
	classHistory  = "history" // a part of the history
)

func keyLabel(class string) string {
	switch class {
	case classImage:
		return "WhatsApp Image Keys"
	case classVideo:
		return "WhatsApp Video Keys"
	case classAudio:
		return "WhatsApp Audio Keys"
	case classState:
		return "WhatsApp App State Keys"
	case classHistory:
		return "WhatsApp History Keys"
	default:
		return "WhatsApp Document Keys"
	}
}

// fileKeys encrypt one file.
type fileKeys struct{ iv, cipher, mac []byte }

func fileKeysOf(key []byte, class string) (fileKeys, error) {
	all, err := hkdf.Key(sha256.New, key, nil, keyLabel(class), 80)
	if err != nil {
		return fileKeys{}, fmt.Errorf("derive the keys of a file: %w", err)
	}
	return fileKeys{iv: all[:16], cipher: all[16:48], mac: all[48:]}, nil
}

// encryptFile writes an encrypted file and returns what its message says about it.
func encryptFile(w io.Writer, r io.Reader, class string) (Media, error) {
	m := Media{Class: class, Key: newSecret()}
	k, err := fileKeysOf(m.Key, class)
	if err != nil {
		return m, err
	}
	plain, sealed, size, _, err := cbcutil.EncryptStream(k.cipher, k.iv, k.mac, r, w)
	m.SHA256, m.EncSHA256, m.Size = plain, sealed, int64(size) //nolint:gosec // at most maxBlob
	return m, err
}

// decryptFile checks an encrypted file against its message and returns its plaintext. At its end
// the reader returns ErrMediaDamaged if the plaintext is not what the message describes.
func decryptFile(file io.ReadSeekCloser, m Media) (io.ReadCloser, error) {
	k, err := fileKeysOf(m.Key, m.Class)
	if err != nil {
		return nil, err
	}
	sealed, err := checkSealed(file, m, k)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(k.cipher)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return &plaintext{
		file: file, cbc: cipher.NewCBCDecrypter(block, k.iv), left: sealed, hash: sha256.New(), media: m,
	}, nil
}

// checkSealed checks the hash and the MAC of an encrypted file. It returns the size of what is
// before the MAC.
func checkSealed(file io.Reader, m Media, k fileKeys) (int64, error) {
	sum, mac := sha256.New(), hmac.New(sha256.New, k.mac)
	mac.Write(k.iv)
	end := &tail{before: mac}
	if _, err := io.Copy(io.MultiWriter(sum, end), file); err != nil {
		return 0, err
	}
	switch {
	case !bytes.Equal(sum.Sum(nil), m.EncSHA256):
		return 0, fmt.Errorf("%w: its SHA-256", ErrMediaDamaged)
	case !bytes.Equal(mac.Sum(nil)[:macSize], end.last):
		return 0, fmt.Errorf("%w: its MAC", ErrMediaDamaged)
	case end.size%aes.BlockSize != 0 || end.size == 0:
		return 0, fmt.Errorf("%w: its padding", ErrMediaDamaged)
	}
	return end.size, nil
}

// tail keeps the last macSize bytes that are written to it, and passes on those before them.
type tail struct {
	before io.Writer
	size   int64 // of what was passed on
	last   []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p...)
	if n := len(t.last) - macSize; n > 0 {
		t.size += int64(n)
		if _, err := t.before.Write(t.last[:n]); err != nil {
			return 0, err
		}
		t.last = append(t.last[:0], t.last[n:]...)
	}
	return len(p), nil
}

// plaintext decrypts a file while it is read.
type plaintext struct {
	file  io.ReadCloser
	cbc   cipher.BlockMode
	left  int64 // encrypted bytes not yet read
	chunk [chunk]byte
	ready []byte // decrypted, not yet returned; a part of chunk
	hash  hash.Hash
	size  int64
	media Media
}

// Read implements io.Reader.
func (p *plaintext) Read(out []byte) (int, error) {
	for len(p.ready) == 0 {
		if p.left == 0 {
			return 0, p.end()
		}
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(out, p.ready)
	p.ready = p.ready[n:]
	p.hash.Write(out[:n])
	p.size += int64(n)
	return n, nil
}

// fill decrypts the next chunk, and removes the padding of the last one.
func (p *plaintext) fill() error {
	buf := p.chunk[:min(p.left, chunk)]
	if _, err := io.ReadFull(p.file, buf); err != nil {
		return err
	}
	p.cbc.CryptBlocks(buf, buf)
	if p.left -= int64(len(buf)); p.left == 0 {
		padding := int(buf[len(buf)-1])
		if padding == 0 || padding > aes.BlockSize {
			return fmt.Errorf("%w: its padding", ErrMediaDamaged)
		}
		buf = buf[:len(buf)-padding]
	}
	p.ready = buf
	return nil
}

func (p *plaintext) end() error {
	switch {
	case !bytes.Equal(p.hash.Sum(nil), p.media.SHA256):
		return fmt.Errorf("%w: the SHA-256 of the plaintext", ErrMediaDamaged)
	case p.size != p.media.Size:
		return fmt.Errorf("%w: %d bytes, not %d", ErrMediaDamaged, p.size, p.media.Size)
	}
	return io.EOF
}

// Close implements io.Closer.
func (p *plaintext) Close() error { return p.file.Close() }
