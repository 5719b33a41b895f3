package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"strconv"

	"golang.org/x/image/draw"

	"postern/internal/postern"
)

// prepareSticker sends WebP of the right size as it is, and converts other pictures.
func (c *Converter) prepareSticker(ctx context.Context, path, mimeType string) (Prepared, error) {
	size, err := measureFile(path, mimeType)
	if err != nil {
		return Prepared{}, err
	}
	p := Prepared{Description: Description{MIMEType: stickerFile, Width: stickerSide, Height: stickerSide}}
	if mimeType == stickerFile {
		if p.Animated, err = isAnimated(path); err != nil {
			return Prepared{}, err
		}
		if size == image.Pt(stickerSide, stickerSide) {
			return p, checkSticker(path)
		}
		if p.Animated {
			return Prepared{}, postern.Invalid("/media", "an animated sticker has 512 × 512 pixels")
		}
	}
	err = c.decode(ctx, path, mimeType, func(img image.Image) error {
		p.File, err = c.toSticker(ctx, square(turned(scaled(img, stickerSide), orientation(path, mimeType))))
		return err
	})
	if errors.Is(err, errTooLarge) {
		err = postern.Invalid("/media", "a picture that becomes a sticker may have at most 25 million pixels")
	}
	return p, err
}

// isAnimated reads the flag of an extended WebP file
// (https://developers.google.com/speed/webp/docs/riff_container#extended_file_format).
func isAnimated(path string) (bool, error) {
	f, err := os.Open(path) //nolint:gosec // the caller names the file, not a sender
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 21)
	if _, err := io.ReadFull(f, head); err != nil {
		return false, errDamaged()
	}
	const animation = 1 << 1
	return string(head[12:16]) == "VP8X" && head[20]&animation != 0, nil
}

// checkSticker refuses a sticker that phones would not load.
func checkSticker(path string) error {
	stat, err := os.Stat(path)
	if err == nil && stat.Size() > maxAnySticker {
		return postern.Invalid("/media", "a sticker may have at most %d bytes", maxAnySticker)
	}
	return err
}

// square puts a picture in the middle of a transparent square, because phones stretch
// stickers of other shapes.
func square(img image.Image) *image.NRGBA {
	page := image.NewNRGBA(image.Rect(0, 0, stickerSide, stickerSide))
	size := fit(img.Bounds().Size(), stickerSide)
	corner := image.Pt((stickerSide-size.X)/2, (stickerSide-size.Y)/2)
	draw.CatmullRom.Scale(page, image.Rectangle{Min: corner, Max: corner.Add(size)}, img, img.Bounds(), draw.Src, nil)
	return page
}

// ours turns the verdict that a file is damaged into an internal error: ffmpeg was given
// our own pixels, so the fault is here.
func ours(err error) error {
	if errors.Is(err, errProgram) {
		return fmt.Errorf("encode sticker: %v", err) //nolint:errorlint // the verdict must not be found
	}
	return err
}

// toSticker encodes WebP with the quality that the size allows. ffmpeg gets pixels from
// us and not the file of the sender.
func (c *Converter) toSticker(ctx context.Context, img *image.NRGBA) (string, error) {
	side := strconv.Itoa(stickerSide)
	for _, quality := range []string{"80", "60", "40", "20", "5"} {
		var out bytes.Buffer
		err := c.runFFmpeg(ctx, bytes.NewReader(img.Pix), &bounded{&out, maxReport},
			"-protocol_whitelist", "pipe", "-f", "rawvideo", "-pix_fmt", "rgba", "-s", side+"x"+side, "-i", "pipe:0",
			"-c:v", "libwebp", "-quality", quality, "-frames:v", "1", "-f", "image2pipe", "pipe:1")
		if err != nil {
			return "", ours(err)
		}
		if out.Len() <= maxSticker || quality == "5" {
			return c.writeFile("postern-*.webp", func(w io.Writer) error {
				_, err := out.WriteTo(w)
				return err
			})
		}
	}
	return "", errDamaged()
}
