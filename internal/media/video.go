package media

import (
	"bytes"
	"context"
	"fmt"
	"image/png"

	"postern/internal/postern"
)

// prepareVideo sends a video as it is, measured and with its first picture.
func (c *Converter) prepareVideo(ctx context.Context, path, mimeType string) (Prepared, error) {
	m, err := c.measure(ctx, path, mimeType)
	if err != nil {
		return Prepared{}, err
	}
	if !m.video {
		return Prepared{}, postern.Invalid("/media", "the file has no video; it can be sent as audio")
	}
	p := Prepared{Description: Description{
		MIMEType: mimeType, Width: m.width, Height: m.height, Duration: m.duration,
	}}
	p.Thumbnail, err = c.firstFrame(ctx, path, mimeType)
	if postern.ReasonOf(err) == postern.ValidationFailed {
		return p, nil // the phones may know the codec, or show a grey box
	}
	return p, err
}

// firstFrame makes the thumbnail of a video. ffmpeg turns and shrinks the picture.
func (c *Converter) firstFrame(ctx context.Context, path, mimeType string) ([]byte, error) {
	scale := fmt.Sprintf("scale=%d:%[1]d:force_original_aspect_ratio=decrease", thumbnailSide)
	args := append(source(path, mimeType),
		"-map", "0:V:0", "-frames:v", "1", "-vf", scale, "-c:v", "png", "-f", "image2pipe", "pipe:1")
	var out bytes.Buffer
	if err := c.runFFmpeg(ctx, nil, &bounded{&out, maxReport}, args...); err != nil {
		return nil, err
	}
	config, err := png.DecodeConfig(bytes.NewReader(out.Bytes()))
	if err != nil || config.Width > thumbnailSide || config.Height > thumbnailSide {
		return nil, errDamaged()
	}
	img, err := png.Decode(&out)
	if err != nil {
		return nil, errDamaged()
	}
	return thumbnail(img, upright), nil
}
