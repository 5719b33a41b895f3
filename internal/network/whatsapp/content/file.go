package content

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

const (
	fileVersion = 1
	hashSize    = 32       // bytes of a SHA-256, and of the key of a file
	maxPath     = 2048     // bytes of the path of a file, and of its URL
	maxFileSize = 4 << 30  // bytes that a sender may declare; the network takes files of 2 GiB
	maxThumb    = 16 << 10 // bytes of a thumbnail that is kept; apps send a few kB
)

// Class is a group of kinds whose files are encrypted and stored in the same way.
type Class string

// The classes of files.
const (
	ClassImage    Class = "image"
	ClassVideo    Class = "video"
	ClassAudio    Class = "audio"
	ClassDocument Class = "document"
)

// ClassOf returns the class of the files of a kind, or "" if messages of the kind carry none.
func ClassOf(kind postern.Kind) Class {
	switch kind {
	case postern.KindImage, postern.KindSticker:
		return ClassImage
	case postern.KindVideo:
		return ClassVideo
	case postern.KindAudio, postern.KindVoice:
		return ClassAudio
	case postern.KindDocument:
		return ClassDocument
	default:
		return ""
	}
}

// File says where the network keeps a file and how to read it. Its JSON is the driver's
// [network.Ref], which is stored: a change of its meaning needs another version.
type File struct {
	Version   int    `json:"v"`
	Class     Class  `json:"class"`
	Path      string `json:"path,omitempty"` // on any of the network's hosts; "" if it is not known
	URL       string `json:"url,omitempty"`  // on one of them; of a file to send
	Key       []byte `json:"key,omitempty"`
	SHA256    []byte `json:"sha256,omitempty"`    // of the file
	EncSHA256 []byte `json:"encSha256,omitempty"` // of what the network keeps
	Size      int64  `json:"size,omitempty"`      // bytes of the file; 0 if they are not known
	KeyTime   int64  `json:"keyTime,omitempty"`   // Unix time at which the key was made
	Thumbnail []byte `json:"thumbnail,omitempty"` // of a received video; see [network.Ref]
	Plain     bool   `json:"plain,omitempty"`     // of a post in a channel: it is not encrypted, and has no key
	Handle    string `json:"handle,omitempty"`    // of the upload of a file to post
}

// Ref returns the reference to the file.
func (f File) Ref() network.Ref {
	f.Version = fileVersion
	ref, _ := json.Marshal(f) // nothing in it can fail
	return ref
}

// ParseRef reads what [File.Ref] returned. It reports false if the file can be neither
// fetched nor sent with it.
func ParseRef(ref network.Ref) (f File, ok bool) {
	err := json.Unmarshal(ref, &f)
	return f, err == nil && f.Version == fileVersion && f.isComplete()
}

// isComplete reports whether the file can be found and read.
func (f File) isComplete() bool {
	switch f.Class {
	case ClassImage, ClassVideo, ClassAudio, ClassDocument:
		sealed := len(f.Key) == hashSize && len(f.EncSHA256) == hashSize
		return IsPath(f.Path) && len(f.SHA256) == hashSize && (sealed || f.Plain)
	}
	return false
}

// HandleOf returns the handle of the upload of a message's file; "" for one that is not posted in a channel.
func HandleOf(a *network.Attachment) string {
	if a == nil {
		return ""
	}
	f, _ := ParseRef(a.Ref)
	return f.Handle
}

// Posted returns the file of a post in a channel, as a message describes it.
func Posted(ref network.Ref) network.Ref {
	var f File
	if json.Unmarshal(ref, &f) != nil || f.Key != nil || f.EncSHA256 != nil {
		return ref
	}
	f.Plain = true
	return f.Ref()
}

// IsPath reports whether s can be the path of a file on the network.
func IsPath(s string) bool {
	if !strings.HasPrefix(s, "/") || len(s) > maxPath || strings.Contains(s, "#") {
		return false
	}
	_, err := url.ParseRequestURI(s)
	return err == nil
}

// described is the part of a message that describes a file.
type described interface {
	GetMimetype() string
	GetDirectPath() string
	GetMediaKey() []byte
	GetFileSHA256() []byte
	GetFileEncSHA256() []byte
	GetFileLength() uint64
	GetMediaKeyTimestamp() int64
}

// fileFromWire returns a file as a received message describes it, without what is not valid.
func fileFromWire(class Class, m described) File {
	f := File{
		Class: class, Key: ofHashSize(m.GetMediaKey()), SHA256: ofHashSize(m.GetFileSHA256()),
		EncSHA256: ofHashSize(m.GetFileEncSHA256()), Size: declaredSize(m.GetFileLength()),
		KeyTime: m.GetMediaKeyTimestamp(),
	}
	if path := m.GetDirectPath(); IsPath(path) {
		f.Path = path
	}
	if v, ok := m.(*waE2E.VideoMessage); ok && isThumbnail(v.GetJPEGThumbnail()) {
		f.Thumbnail = v.GetJPEGThumbnail()
	}
	return f
}

// isThumbnail reports whether b begins as a JPEG does, and is small.
func isThumbnail(b []byte) bool {
	return len(b) <= maxThumb && bytes.HasPrefix(b, []byte{0xff, 0xd8, 0xff})
}

func ofHashSize(b []byte) []byte {
	if len(b) != hashSize {
		return nil
	}
	return b
}

// declaredSize returns the size that a sender declares, or 0 if no file has it.
func declaredSize(n uint64) int64 {
	if n > maxFileSize {
		return 0
	}
	return int64(n)
}
