package media_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"postern/internal/media"
	"postern/internal/postern"
)

// exif puts metadata with an orientation into a JPEG file.
func exif(content []byte, orientation byte) []byte {
	directory := "MM\x00\x2a\x00\x00\x00\x08\x00\x01"
	entry := "\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string([]byte{orientation}) + "\x00\x00"
	return withExif(content, directory+entry)
}

func withExif(content []byte, tiff string) []byte {
	segment := "\xff\xe1" + string([]byte{0, byte(len(tiff) + 8)}) + "Exif\x00\x00" + tiff
	return append(append(bytes.Clone(content[:2]), segment...), content[2:]...)
}

// corner is a picture of 80 × 40 whose stored upper left quarter is black.
func corner() image.Image {
	img := image.NewGray(image.Rect(0, 0, 80, 40))
	for i := range img.Pix {
		if x, y := i%80, i/80; x >= 40 || y >= 20 {
			img.Pix[i] = 255
		}
	}
	return img
}

func TestPicturesOfTurnedPhonesAreUpright(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	for o, want := range map[byte]struct {
		size  image.Point
		right bool // whether the black quarter is shown on the right
		low   bool // and below
	}{
		1: {image.Pt(80, 40), false, false},
		2: {image.Pt(80, 40), true, false},
		3: {image.Pt(80, 40), true, true},
		4: {image.Pt(80, 40), false, true},
		5: {image.Pt(40, 80), false, false},
		6: {image.Pt(40, 80), true, false},
		7: {image.Pt(40, 80), true, true},
		8: {image.Pt(40, 80), false, true},
		9: {image.Pt(80, 40), false, false},
	} {
		path := file(t, "a.jpg", exif(jpegOf(t, corner()), o))
		p := prepare(t, c, postern.KindImage, path)
		d, err := c.Describe(t.Context(), path)
		if err != nil || d != p.Description || image.Pt(p.Width, p.Height) != want.size {
			t.Errorf("orientation %d: %+v and %+v, %v", o, p.Description, d, err)
		}
		img, err := jpeg.Decode(bytes.NewReader(p.Thumbnail))
		if err != nil || img.Bounds().Size() != want.size {
			t.Fatalf("orientation %d: a thumbnail of %v, %v", o, img.Bounds(), err)
		}
		at := image.Pt(5, 5)
		if want.right {
			at.X = want.size.X - 5
		}
		if want.low {
			at.Y = want.size.Y - 5
		}
		if gray := color.GrayModel.Convert(img.At(at.X, at.Y)).(color.Gray); gray.Y > 60 {
			t.Errorf("orientation %d: %v at %v, want black", o, gray, at)
		}
	}
}

func TestBrokenMetadataIsIgnored(t *testing.T) {
	t.Parallel()
	c := withoutFFmpeg(t)
	picture := jpegOf(t, corner())
	for _, tiff := range []string{
		"", "MM", "MM\x00\x2a\xff\xff\xff\xff", "II\x2a\x00\x08\x00\x00\x00\xff\xff",
		"MM\x00\x2a\x00\x00\x00\x08\x00\x05\x01",
	} {
		if p := prepare(t, c, postern.KindImage, file(t, "a.jpg", withExif(picture, tiff))); p.Width != 80 {
			t.Errorf("%q: %+v", tiff, p.Description)
		}
	}
}

func FuzzPrepareImage(f *testing.F) {
	c := media.New(media.Options{Scratch: f.TempDir(), FFmpeg: "/does/not/exist"})
	f.Add([]byte("GIF89a"))
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPVP8X"))
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x10Exif\x00\x00MM\x00\x2a"))
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := c.Prepare(t.Context(), postern.KindImage, file(t, "a", content))
		if err != nil && postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("%v", err)
		}
		if len(p.Thumbnail) > media.MaxThumbnail {
			t.Errorf("a thumbnail of %d bytes", len(p.Thumbnail))
		}
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
	})
}
