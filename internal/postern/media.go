package postern

// MediaStatus says whether the bytes of a file can be read.
type MediaStatus string

// The states of a file. A pending one is being fetched. A failed one could not be fetched, and
// an expired one was removed.
const (
	MediaPending MediaStatus = "pending"
	MediaReady   MediaStatus = "ready"
	MediaFailed  MediaStatus = "failed"
	MediaExpired MediaStatus = "expired"
)

// MaxMedia bounds a file, in bytes.
const MaxMedia = 100 << 20

// MaxFilename bounds the name of a file, in bytes.
const MaxFilename = 200

// Media is a file: one that was uploaded, or that came with a message. The members that a
// pending file has are those that its sender declares.
type Media struct {
	ID          MediaID     `json:"id" doc:"Opaque id of the file." example:"med_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	MIMEType    string      `json:"mimeType" doc:"Type of the file, found in its bytes. While the file is pending, the one that the sender declares." example:"image/jpeg"`
	Size        int64       `json:"size" doc:"Bytes of the file; 0 if it is not known yet." example:"48213"`
	SHA256      string      `json:"sha256,omitempty" doc:"SHA-256 of the file, in lower-case hexadecimal digits; absent until the file is ready." example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	Filename    string      `json:"filename,omitempty" doc:"Name of the file; absent if it has none." example:"invoice.pdf"`
	Status      MediaStatus `json:"status" enum:"pending,ready,failed,expired" doc:"pending: the file is being fetched. ready: it can be read. failed: it could not be fetched. expired: it was removed, or is not kept." example:"ready"`
	Recoverable bool        `json:"recoverable,omitzero" doc:"True if the file failed and a request for it tries again; otherwise absent." example:"true"`
	Detail      string      `json:"detail,omitempty" doc:"Why the file failed, for people; otherwise absent." example:"the server responded with status 404"`
	Duration    float64     `json:"duration,omitzero" doc:"Length of a video or of audio, in seconds; absent if it is not known." example:"12.5"`
	Width       int         `json:"width,omitzero" doc:"Width of a picture or video, in pixels; absent if it is not known." example:"1280"`
	Height      int         `json:"height,omitzero" doc:"Height of a picture or video, in pixels; absent if it is not known." example:"720"`
}

// HasMedia reports whether messages of the kind carry a file.
func (k Kind) HasMedia() bool {
	switch k {
	case KindImage, KindVideo, KindAudio, KindVoice, KindDocument, KindSticker:
		return true
	default:
		return false
	}
}

// hasCaption reports whether messages of the kind may have a text beside their file.
func (k Kind) hasCaption() bool { return k == KindImage || k == KindVideo || k == KindDocument }

// HasText reports whether a message may have a text: its own, or beside a file.
func (k Kind) HasText() bool { return k == KindText || k.hasCaption() }

// CanBeEdited reports whether the text of a message that was sent can be changed: the text of a
// text message, or the caption of a file that has one and is not for one view.
func (c Content) CanBeEdited() bool {
	return c.Kind == KindText || c.Kind.hasCaption() && c.Text != "" && !c.ViewOnce
}

// IsPlayed reports whether messages of the kind are played.
func (k Kind) IsPlayed() bool { return k == KindVideo || k == KindAudio || k == KindVoice }

// mayBeViewedOnce reports whether the file of a message of the kind can be sent for one view.
func (k Kind) mayBeViewedOnce() bool {
	return k == KindImage || k == KindVideo || k == KindAudio || k == KindVoice
}

// checkMedia checks the file of a message, and what else only kinds with a file have.
func (c Content) checkMedia() error {
	switch {
	case c.Media == nil:
		return Invalid("/media", "a message of this kind needs media")
	case len(c.Media.Filename) > MaxFilename:
		return Invalid("/media/filename", "the name of a file may have at most %d bytes", MaxFilename)
	case c.Kind == KindDocument && c.Media.Filename == "":
		return Invalid("/media/filename", "a document needs a filename")
	case c.GIF && c.Round:
		return Invalid("/round", "a video is shown as a gif or as a round video, not both")
	}
	return nil
}
