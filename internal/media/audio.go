package media

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"postern/internal/media/ogg"
	"postern/internal/postern"
)

const opusType = "audio/ogg; codecs=opus" // as the vendor's phones write it

// prepareAudio sends an audio file as it is. Without ffmpeg its duration is not known.
func (c *Converter) prepareAudio(ctx context.Context, path, mimeType string) (Prepared, error) {
	p := Prepared{Description: Description{MIMEType: mimeType}}
	if !c.HasFFmpeg() && mimeType != "video/mp4" && mimeType != "video/3gpp" {
		return p, nil
	}
	m, err := c.measure(ctx, path, mimeType)
	switch {
	case err != nil:
		return Prepared{}, err
	case m.video:
		return Prepared{}, postern.Invalid("/media", "the file has a video; send it as a video")
	case m.opus && mimeType == "audio/ogg":
		p.MIMEType = opusType
	case mimeType == "video/mp4" || mimeType == "video/3gpp": // the container says no more
		p.MIMEType = "audio/mp4"
	}
	p.Duration = m.duration
	return p, nil
}

// prepareVoice sends what all phones play: Opus in Ogg, with one channel and without the
// framing that iPhones refuse. A file that has this form is sent as it is, or reframed
// without ffmpeg; any other is converted.
func (c *Converter) prepareVoice(ctx context.Context, path, mimeType string) (Prepared, error) {
	p := Prepared{Description: Description{MIMEType: opusType}}
	found, err := inspect(path)
	switch {
	case err == nil && found.Channels == 1 && !found.CodeZero:
		p.Duration = found.Duration
	case err == nil && found.Channels == 1:
		p.File, p.Duration, err = c.reframe(path)
	case err == nil || errors.Is(err, ogg.ErrFormat):
		p.File, p.Duration, err = c.toVoice(ctx, path, mimeType)
	}
	if err == nil && (p.Duration <= 0 || p.Duration > maxVoice) {
		err = postern.Invalid("/media", "a voice message may last at most two hours, and more than nothing")
	}
	if err == nil {
		p.Waveform, err = c.waveform(ctx, orElse(p.File, path), p.Duration)
	}
	if err != nil {
		return Prepared{}, errors.Join(err, p.Remove())
	}
	return p, nil
}

func orElse(path, other string) string {
	if path == "" {
		return other
	}
	return path
}

// inspect looks at a file that may be Opus in Ogg.
func inspect(path string) (ogg.Stream, error) {
	f, err := os.Open(path) //nolint:gosec // the caller names the file, not a sender
	if err != nil {
		return ogg.Stream{}, err
	}
	defer f.Close()
	return ogg.Inspect(f)
}

// reframe copies Opus in Ogg with the framing that all phones take.
func (c *Converter) reframe(path string) (string, time.Duration, error) {
	f, err := os.Open(path) //nolint:gosec // the caller names the file, not a sender
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	var found ogg.Stream
	file, err := c.writeFile("postern-*.ogg", func(w io.Writer) error {
		out := bufio.NewWriter(w)
		found, err = ogg.Rewrite(out, f)
		return errors.Join(err, out.Flush())
	})
	return file, found.Duration, err
}

// toVoice converts the first audio of a file, without its tags and pictures.
func (c *Converter) toVoice(ctx context.Context, path, mimeType string) (string, time.Duration, error) {
	found, err := c.probe(ctx, path, mimeType)
	if err != nil {
		return "", 0, err
	}
	if !found.measured().audio {
		return "", 0, postern.Invalid("/media", "the file has no audio; it can be sent as a video or a document")
	}
	limit := strconv.Itoa(int(maxVoice/time.Second) + 1) // seconds; a longer one is then refused
	args := append(source(path, mimeType),
		"-map", "0:a:0", "-map_metadata", "-1", "-t", limit, "-ac", "1", "-ar", "16000",
		"-c:a", "libopus", "-application", "voip", "-b:a", strconv.Itoa(voiceBitrate), "-f", "ogg", "pipe:1")
	raw, err := c.writeFile("postern-*.ogg", func(w io.Writer) error {
		return c.runFFmpeg(ctx, nil, &bounded{w, maxVoiceFile}, args...)
	})
	if err != nil {
		return "", 0, err
	}
	file, length, err := c.reframe(raw)
	if errors.Is(err, ogg.ErrFormat) { // no audio came out
		err = errDamaged()
	}
	return file, length, errors.Join(err, os.Remove(raw))
}

// waveform decodes a voice message for the picture of its loudness. Without ffmpeg there
// is none, and phones show a flat line.
func (c *Converter) waveform(ctx context.Context, path string, length time.Duration) ([]byte, error) {
	if !c.HasFFmpeg() {
		return nil, nil
	}
	w := newWave(length)
	args := append(source(path, "audio/ogg"),
		"-map", "0:a:0", "-ac", "1", "-ar", strconv.Itoa(waveformRate), "-f", "s16le", "pipe:1")
	if err := c.runFFmpeg(ctx, nil, w, args...); err != nil {
		return nil, err
	}
	return w.bars(), nil
}
