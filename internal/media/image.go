package media

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"

	"postern/internal/media/smalljpeg"
	"postern/internal/postern"
)

// errTooLarge means that a picture is not decoded because of its size.
var errTooLarge = errors.New("the picture has too many pixels to be decoded")

// codec measures and decodes pictures of one type. A decoder reads only the first frame.
type codec struct {
	measure func(io.Reader) (image.Config, error)
	decode  func(io.Reader) (image.Image, error)
}

// codecs does not use the registry of package image, by which a file of one type could be
// decoded as another.
func codecs(mimeType string) (codec, bool) {
	switch mimeType {
	case "image/jpeg":
		return codec{jpeg.DecodeConfig, jpeg.Decode}, true
	case "image/png":
		return codec{png.DecodeConfig, png.Decode}, true
	case "image/gif":
		return codec{gif.DecodeConfig, gif.Decode}, true
	case "image/webp":
		return codec{webp.DecodeConfig, webp.Decode}, true
	}
	return codec{}, false
}

// prepareImage sends JPEG and PNG as they are. The others become JPEG, which all phones
// show; of an animation, this is the first frame.
func (c *Converter) prepareImage(ctx context.Context, path, mimeType string) (Prepared, error) {
	size, err := measureFile(path, mimeType)
	if err != nil {
		return Prepared{}, err
	}
	if size.X*size.Y > maxImage {
		return Prepared{}, postern.Invalid("/media", "an image may have at most 100 million pixels")
	}
	o := orientation(path, mimeType)
	size = turnedSize(size, o)
	p := Prepared{Description: Description{MIMEType: mimeType, Width: size.X, Height: size.Y}}
	asIs := mimeType == "image/jpeg" || mimeType == "image/png"
	if mimeType == "image/jpeg" {
		if p.Thumbnail, err = c.quickThumbnail(ctx, path, size, o); p.Thumbnail != nil || ctx.Err() != nil {
			return p, err
		}
	}
	err = c.decode(ctx, path, mimeType, func(img image.Image) error {
		if p.Thumbnail = thumbnail(img, o); asIs {
			return nil
		}
		p.MIMEType = "image/jpeg"
		p.File, err = c.writeFile("postern-*.jpg", func(w io.Writer) error {
			return jpeg.Encode(w, opaque(img), &jpeg.Options{Quality: 90})
		})
		return err
	})
	if errors.Is(err, errTooLarge) && asIs {
		return p, nil // without a thumbnail
	}
	if errors.Is(err, errTooLarge) {
		return Prepared{}, postern.Invalid("/media", "a picture that must be converted may have 25 million pixels")
	}
	return p, err
}

// quickThumbnail makes the thumbnail of a JPEG file without decoding all of its pixels. It
// returns an error if the file is damaged or of an unusual form.
func (c *Converter) quickThumbnail(ctx context.Context, path string, size image.Point, o int) (b []byte, err error) {
	err = c.decodeWith(ctx, quickDecode, path, quickPixels(size), func(img image.Image) error {
		b = thumbnail(img, o)
		return nil
	})
	return b, err
}

func quickDecode(r io.Reader) (image.Image, error) { return smalljpeg.Decode(r, thumbnailSide) }

// quickPixels is how many pixels quickDecode takes at most of those that are decoded at a time.
func quickPixels(size image.Point) int64 { return int64(size.X) * int64(size.Y) / 8 }

// Thumbnail makes a small JPEG of at most MaxThumbnail bytes of a JPEG file at a path, without decoding
// all of its pixels. It returns nil for other and for very large files, while many other pictures are
// decoded, and when the file is damaged: Prepare makes the thumbnail later, or reports the reason.
func (c *Converter) Thumbnail(ctx context.Context, path string) (b []byte) {
	defer func() {
		if recover() != nil { // a file of a stranger; Prepare panics too, and that is reported
			b = nil
		}
	}()
	if mimeType, err := sniffFile(path); err != nil || mimeType != "image/jpeg" {
		return nil
	}
	size, err := measureFile(path, "image/jpeg")
	pixels := quickPixels(size)
	if err != nil || size.X*size.Y > maxDecoded || !c.pixels.TryAcquire(pixels) {
		return nil
	}
	defer c.pixels.Release(pixels)
	err = c.decodeNow(ctx, quickDecode, path, func(img image.Image) error {
		b = thumbnail(img, orientation(path, "image/jpeg"))
		return nil
	})
	if err != nil {
		return nil
	}
	return b
}

// measureFile reads the size of a picture from its header.
func measureFile(path, mimeType string) (image.Point, error) {
	f, err := os.Open(path) //nolint:gosec // the caller names the file, not a sender
	if err != nil {
		return image.Point{}, err
	}
	defer f.Close()
	known, ok := codecs(mimeType)
	if !ok {
		return image.Point{}, errDamaged()
	}
	config, err := known.measure(bufio.NewReader(f))
	if err != nil || config.Width < 1 || config.Height < 1 {
		return image.Point{}, errDamaged()
	}
	return image.Pt(config.Width, config.Height), nil
}

// decode calls use with the picture in a file. The size is checked before memory is taken,
// and all pictures that are decoded at a time share maxDecoded pixels. Decoding ends with
// ctx or after the Converter's timeout, even if the file makes it long.
func (c *Converter) decode(ctx context.Context, path, mimeType string, use func(image.Image) error) error {
	size, err := measureFile(path, mimeType)
	if err != nil {
		return err
	}
	pixels := int64(size.X) * int64(size.Y)
	if pixels > maxDecoded || max(size.X, size.Y) > maxSide {
		return errTooLarge
	}
	known, _ := codecs(mimeType)
	return c.decodeWith(ctx, known.decode, path, pixels, use)
}

// decodeWith calls use with a picture. It takes a number of the pixels that are decoded at a
// time, with 8 bytes for each.
func (c *Converter) decodeWith(
	ctx context.Context, decode func(io.Reader) (image.Image, error), path string, pixels int64,
	use func(image.Image) error,
) error {
	if err := c.pixels.Acquire(ctx, pixels); err != nil {
		return err
	}
	defer c.pixels.Release(pixels)
	return c.decodeNow(ctx, decode, path, use)
}

// decodeNow calls use with a picture. Its caller has taken the pixels.
func (c *Converter) decodeNow(
	ctx context.Context, decode func(io.Reader) (image.Image, error), path string, use func(image.Image) error,
) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	img, err := decodeFile(limited, decode, path)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return errDamaged()
	}
	return use(img)
}

func decodeFile(
	ctx context.Context, decode func(io.Reader) (image.Image, error), path string,
) (image.Image, error) {
	f, err := os.Open(path) //nolint:gosec // the caller names the file, not a sender
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decode(bufio.NewReader(contextReader{ctx, f}))
}

// contextReader ends with its context: a decoder that goes on must read.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// thumbnail makes an upright JPEG of at most MaxThumbnail bytes, or nil.
func thumbnail(img image.Image, o int) []byte {
	small := opaque(turned(scaled(img, thumbnailSide), o))
	for _, quality := range []int{75, 60, 45, 30, 15, 5} {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, small, &jpeg.Options{Quality: quality}); err != nil {
			return nil
		}
		if b.Len() <= MaxThumbnail {
			return b.Bytes()
		}
	}
	return nil
}

// scaled returns the picture with side pixels at its longer side, or as it is if it is
// smaller. The shorter side has at least one pixel.
func scaled(img image.Image, side int) image.Image {
	size := fit(img.Bounds().Size(), side)
	if longer := max(img.Bounds().Dx(), img.Bounds().Dy()); longer <= side {
		return img
	}
	small := image.NewRGBA(image.Rectangle{Max: size})
	draw.BiLinear.Scale(small, small.Bounds(), img, img.Bounds(), draw.Src, nil)
	return small
}

// fit is the size that has side pixels at the longer side and the same shape.
func fit(size image.Point, side int) image.Point {
	longer := max(size.X, size.Y)
	return image.Pt(max(1, size.X*side/longer), max(1, size.Y*side/longer))
}

// opaque puts a picture on white, because JPEG has no transparency.
func opaque(img image.Image) image.Image {
	if o, ok := img.(interface{ Opaque() bool }); ok && o.Opaque() {
		return img
	}
	page := image.NewRGBA(image.Rectangle{Max: img.Bounds().Size()})
	draw.Draw(page, page.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(page, page.Bounds(), img, img.Bounds().Min, draw.Over)
	return page
}

// writeFile fills a new file in the directory for converted ones. If that fails, nothing
// is left of it.
func (c *Converter) writeFile(pattern string, fill func(io.Writer) error) (string, error) {
	f, err := os.CreateTemp(c.scratch, pattern)
	if err != nil {
		return "", err
	}
	err = errors.Join(fill(f), f.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
