package vendorsim

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrMediaGone is returned for a file that the vendor no longer has.
var ErrMediaGone = errors.New("file is no longer stored")

// ErrUnknownType is returned for a type of content that phones cannot write.
var ErrUnknownType = errors.New("phones cannot write this type")

// The types of messages with a file.
const (
	TypeImage    = "image"
	TypeVideo    = "video" // also a GIF and a round video
	TypeAudio    = "audio"
	TypeVoice    = "voice"
	TypeDocument = "document"
	TypeSticker  = "sticker"
)

// Media is the file of a message, as the message describes it.
type Media struct {
	MimeType string `json:"mimeType"`
	Size     int64  `json:"size"`   // of the plaintext, in bytes
	SHA256   digest `json:"sha256"` // of the plaintext
	FileName string `json:"fileName,omitempty"`
	Seconds  int    `json:"seconds,omitempty"` // length of a video or of audio
	Width    int    `json:"width,omitempty"`   // in pixels
	Height   int    `json:"height,omitempty"`
	GIF      bool   `json:"gif,omitempty"`      // a video that plays by itself
	Round    bool   `json:"round,omitempty"`    // a video note
	Animated bool   `json:"animated,omitempty"` // a sticker
	Waveform []byte `json:"waveform,omitempty"` // of a voice message
	ViewOnce bool   `json:"viewOnce,omitempty"`

	// Thumbnail is a small JPEG of a video that a phone sends; nil for none.
	Thumbnail []byte `json:"-"`

	// Where the encrypted file is, and its keys: "image", "video", "audio" or "document".
	Path      string `json:"path"`
	Class     string `json:"class"`
	Key       []byte `json:"key"`
	EncSHA256 digest `json:"encSha256"`

	// Data is the file that a phone writes if Path is "". It is uploaded and not kept here.
	Data []byte `json:"-"`
}

// digest is a SHA-256, written in hexadecimal.
type digest []byte

// String returns the hexadecimal form.
func (d digest) String() string { return hex.EncodeToString(d) }

// MarshalJSON implements json.Marshaler.
func (d digest) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *digest) UnmarshalJSON(raw []byte) error {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	sum, err := hex.DecodeString(s)
	*d = sum
	return err
}

// classOf returns the class of files of a type of content, "" for a type without a file.
func classOf(contentType string) string {
	switch contentType {
	case TypeImage, TypeSticker:
		return classImage
	case TypeVideo:
		return classVideo
	case TypeAudio, TypeVoice:
		return classAudio
	case TypeDocument:
		return classDocument
	}
	return ""
}

// Upload encrypts a file on a phone and stores it for messages to or from a linked account.
// contentType is the type of these messages, such as [TypeImage]. The caller completes the result
// (mime type, length, …) and passes it to [Vendor.SendContent]. A file has at most 100 MiB.
func (v *Vendor) Upload(account, contentType string, r io.Reader) (Media, error) {
	n, err := v.devices.linkedNumber(account)
	if err != nil {
		return Media{}, err
	}
	return v.mediaHost.put(n, contentType, r)
}

// put encrypts and stores a file for an account.
func (v mediaHost) put(account number, contentType string, r io.Reader) (Media, error) {
	class := classOf(contentType)
	if class == "" {
		return Media{}, fmt.Errorf("%w: %q has no file", ErrUnknownType, contentType)
	}
	d, err := v.blobs.create()
	if err != nil {
		return Media{}, fmt.Errorf("upload: %w", err)
	}
	m, err := encryptFile(d, r, class)
	if err != nil {
		d.discard()
		return Media{}, fmt.Errorf("upload: %w", err)
	}
	one, err := d.keep(account)
	if err != nil {
		return Media{}, fmt.Errorf("upload: %w", err)
	}
	m.Path = one.path()
	return m, nil
}

// uploaded returns content whose file, if there is one, is stored for an account.
func (v mediaHost) uploaded(account number, c Content) (Content, error) {
	if classOf(c.Type) == "" {
		return c, nil
	}
	m := *c.Media
	if m.Path == "" {
		stored, err := v.put(account, c.Type, bytes.NewReader(m.Data))
		if err != nil {
			return c, err
		}
		m.Path, m.Class, m.Key = stored.Path, stored.Class, stored.Key
		m.Size, m.SHA256, m.EncSHA256 = stored.Size, stored.SHA256, stored.EncSHA256
	}
	m.Data, m.MimeType = nil, cmp.Or(m.MimeType, mimeOf(c.Type))
	c.Media = &m
	return c, nil
}

// OpenMedia decrypts a file as the phone that shows it does. The caller reads it to the end, where
// a file that is not what its message describes gives [ErrMediaDamaged], and closes it.
func (v *Vendor) OpenMedia(m Media) (io.ReadCloser, error) {
	file, _, err := v.blobs.open(blobID(m.Path))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMediaGone, err)
	}
	if len(m.Key) == 0 { // of a post in a channel
		return file, nil
	}
	plain, err := decryptFile(file, m)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return plain, nil
}

// ShownMessage returns a message that the phone of a number shows.
func (v *Vendor) ShownMessage(num, networkID string) (Shown, error) {
	n, err := parseNumber(num)
	if err != nil {
		return Shown{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if m := v.records.shown(n, networkID); m != nil {
		return *m, nil
	}
	return Shown{}, fmt.Errorf("%w: %s on the phone of %s", ErrUnknownMessage, networkID, n)
}
