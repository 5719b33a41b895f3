package media

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"postern/internal/postern"
)

// Sniff returns the type of a file that starts with head, of which it reads at most 3,072
// bytes: application/octet-stream if nothing is known. What a sender declares plays no role,
// and a file that is valid as two types is what its beginning says.
func Sniff(head []byte) string {
	mimeType, _, _ := strings.Cut(mimetype.Detect(head).String(), ";")
	switch mimeType {
	case "image/vnd.mozilla.apng":
		return "image/png"
	case "audio/x-m4a":
		return "audio/mp4"
	case "video/x-m4v":
		return "video/mp4"
	}
	return mimeType
}

// sniffFile reads the type of the file at a path.
func sniffFile(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // the caller names the file, not a sender
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, headLength)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	return Sniff(head[:n]), nil
}

// carried returns the types that a kind of message carries, and what is said about others.
func carried(kind postern.Kind) (types, instead string) {
	switch kind {
	case postern.KindImage:
		return "image/jpeg image/png image/webp image/gif",
			"an image is a JPEG, PNG, WebP or GIF file; send other files as a document"
	case postern.KindVideo:
		return "video/mp4 video/3gpp",
			"a video is an MP4 or 3GPP file; send other files as a document"
	case postern.KindAudio:
		return "audio/aac audio/mp4 audio/amr audio/mpeg audio/ogg video/mp4 video/3gpp",
			"audio is an AAC, MP4, AMR, MP3 or Ogg file; send other files as a voice message or a document"
	case postern.KindVoice:
		return "audio/aac audio/mp4 audio/amr audio/mpeg audio/ogg audio/wav audio/flac audio/aiff " +
				"video/mp4 video/3gpp video/webm video/ogg video/quicktime",
			"a voice message is made from an audio file; send other files as a document"
	case postern.KindSticker:
		return "image/webp image/png image/jpeg",
			"a sticker is a WebP, PNG or JPEG file"
	default:
		return "", ""
	}
}

// Fits returns nil if a message of a kind can carry a file of a type, as it is or
// converted. A document carries anything. What is inside the file may still be refused.
func Fits(kind postern.Kind, mimeType string) error {
	types, instead := carried(kind)
	switch {
	case kind == postern.KindDocument:
		return nil
	case types == "":
		return postern.Invalid("/type", "a message of this kind carries no media")
	case slices.Contains(strings.Fields(types), mimeType):
		return nil
	}
	return postern.Invalid("/media", "%s", instead)
}

// errDamaged is about a file whose content is not what its beginning promises.
func errDamaged() error {
	return postern.Invalid("/media", "the file is damaged or incomplete; it can be sent as a document")
}
