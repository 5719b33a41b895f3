// Package media looks at files that people send and prepares them for messages: it finds
// out what they are, measures pictures, videos and audio, and makes thumbnails, stickers
// and voice messages. Package blob, below it, stores them.
//
// Files come from strangers. Their type is read from their bytes and never from what
// somebody says about them; every picture is measured before it is decoded; video and
// audio are left to ffmpeg, in a process of its own with a limit for everything.
package media

import (
	"context"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sync/semaphore"

	"postern/internal/fair"
	"postern/internal/postern"
)

// Options configure a Converter. The zero value works.
type Options struct {
	// Scratch is the directory for converted files, named postern-*; "" means that of the
	// system. What is in it when the process starts can be removed.
	Scratch string
	// FFmpeg and FFprobe are the programs; "" means those in PATH.
	FFmpeg, FFprobe string
	// Processes is how many of them run at a time, half of them for one workspace; 0 means 2.
	Processes int
	// Timeout bounds one of them, and the decoding of one picture; 0 means a minute.
	Timeout time.Duration
}

// Converter prepares files for messages. It is safe for concurrent use, and the work that
// is done at a time is bounded; other calls wait.
type Converter struct {
	scratch         string
	ffmpeg, ffprobe string // absolute paths; "" if the server does not have them
	timeout         time.Duration
	processes       *fair.Shares
	workspace       postern.WorkspaceID // whose files they are
	pixels          *semaphore.Weighted // that are decoded at a time, in all pictures together
}

// New creates a Converter. Missing programs are no error; HasFFmpeg tells.
func New(o Options) *Converter {
	if o.Processes == 0 {
		o.Processes = defaultProcesses
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &Converter{
		scratch:   o.Scratch,
		ffmpeg:    find(o.FFmpeg, "ffmpeg"),
		ffprobe:   find(o.FFprobe, "ffprobe"),
		timeout:   o.Timeout,
		processes: fair.New(o.Processes),
		pixels:    semaphore.NewWeighted(maxDecoded),
	}
}

// find returns where a program is, or "".
func find(name, fallback string) string {
	if name == "" {
		name = fallback
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return found
}

// For returns a Converter for the files of a workspace. It shares its bounds with c.
func (c *Converter) For(ws postern.WorkspaceID) *Converter {
	of := *c
	of.workspace = ws
	return &of
}

// HasFFmpeg reports whether videos and voice messages can be prepared.
func (c *Converter) HasFFmpeg() bool { return c.ffmpeg != "" && c.ffprobe != "" }

// Description says what a file is. Members that do not apply, or that are not known, are 0.
type Description struct {
	MIMEType      string // by its first bytes, without parameters
	Width, Height int    // pixels, as shown
	Duration      time.Duration
}

// Prepared is a file as it is sent.
type Prepared struct {
	Description
	// File is the path of a converted copy; "" means that the file itself is sent.
	File      string
	Thumbnail []byte // JPEG, at most MaxThumbnail bytes; nil if there is none
	Waveform  []byte // of a voice message: 64 values from 0 to 100; nil if it is not known
	Animated  bool   // of a sticker
}

// Remove deletes the converted copy. The caller does so when the file was sent.
func (p Prepared) Remove() error {
	if p.File == "" {
		return nil
	}
	return os.Remove(p.File)
}

// Prepare makes the file at a path ready for a message of a kind. If the kind cannot carry
// it, the error has the reason ValidationFailed and says what can be sent instead.
func (c *Converter) Prepare(ctx context.Context, kind postern.Kind, path string) (Prepared, error) {
	mimeType, err := sniffFile(path)
	if err != nil {
		return Prepared{}, err
	}
	if err := Fits(kind, mimeType); err != nil {
		return Prepared{}, err
	}
	switch kind {
	case postern.KindImage:
		return c.prepareImage(ctx, path, mimeType)
	case postern.KindVideo:
		return c.prepareVideo(ctx, path, mimeType)
	case postern.KindAudio:
		return c.prepareAudio(ctx, path, mimeType)
	case postern.KindVoice:
		return c.prepareVoice(ctx, path, mimeType)
	case postern.KindSticker:
		return c.prepareSticker(ctx, path, mimeType)
	default: // a document is sent as it is, and nobody looks inside
		return Prepared{Description: Description{MIMEType: mimeType}}, nil
	}
}

// Describe finds out what the file at a path is. It converts nothing and decodes no
// pictures, and what cannot be measured is left out. An error means that the file cannot
// be read or that ctx has ended.
func (c *Converter) Describe(ctx context.Context, path string) (Description, error) {
	mimeType, err := sniffFile(path)
	if err != nil {
		return Description{}, err
	}
	d := Description{MIMEType: mimeType}
	if size, err := measureFile(path, mimeType); err == nil {
		size = turnedSize(size, orientation(path, mimeType))
		d.Width, d.Height = size.X, size.Y
	}
	if demuxer(mimeType) == "" || !c.HasFFmpeg() {
		return d, nil
	}
	if found, err := c.measure(ctx, path, mimeType); err == nil {
		d.Width, d.Height, d.Duration = found.width, found.height, found.duration
	}
	return d, ctx.Err()
}
