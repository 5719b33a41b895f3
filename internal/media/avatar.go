package media

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"

	"golang.org/x/image/draw"

	"postern/internal/postern"
)

// Avatar makes the picture of a group or a person of a picture in a file: the square in its middle, as a JPEG of at most
// 640 pixels at each side. An error of the reason ValidationFailed means that it cannot be made.
func (c *Converter) Avatar(ctx context.Context, path string) (b []byte, err error) {
	mimeType, err := sniffFile(path)
	if err != nil {
		return nil, err
	}
	if _, ok := codecs(mimeType); !ok {
		return nil, postern.Invalid("/media", "this must be a picture: JPEG, PNG, GIF or WebP")
	}
	err = c.decode(ctx, path, mimeType, func(img image.Image) error {
		var out bytes.Buffer
		err := jpeg.Encode(&out, opaque(turned(middle(img), orientation(path, mimeType))), &jpeg.Options{Quality: avatarQuality})
		b = out.Bytes()
		return err
	})
	if errors.Is(err, errTooLarge) {
		err = postern.Invalid("/media", "the picture may have at most 25 million pixels")
	}
	return b, err
}

// middle returns the square in the middle of a picture, with at most avatarSide pixels at each side.
func middle(img image.Image) image.Image {
	b := img.Bounds()
	side := min(b.Dx(), b.Dy())
	from := image.Pt(b.Min.X+(b.Dx()-side)/2, b.Min.Y+(b.Dy()-side)/2)
	small := image.NewRGBA(image.Rect(0, 0, min(side, avatarSide), min(side, avatarSide)))
	draw.BiLinear.Scale(small, small.Bounds(), img, image.Rectangle{Min: from, Max: from.Add(image.Pt(side, side))},
		draw.Src, nil)
	return small
}
