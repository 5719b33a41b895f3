package media_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/webp"

	"postern/internal/media"
	"postern/internal/postern"
)

// allocated is how many bytes the process has allocated until now.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// claiming changes the size in the header of a PNG file.
func claiming(content []byte, width, height uint32) []byte {
	content = bytes.Clone(content)
	binary.BigEndian.PutUint32(content[16:], width)
	binary.BigEndian.PutUint32(content[20:], height)
	binary.BigEndian.PutUint32(content[29:], crc32.ChecksumIEEE(content[12:29]))
	return content
}

func TestImagesGetASizeAndAThumbnail(t *testing.T) {
	t.Parallel()
	c := withoutFFmpeg(t)
	for _, tt := range []struct {
		name          string
		content       []byte
		width, height int // of the thumbnail
	}{
		{"wide.jpg", jpegOf(t, gradient(1200, 600)), 100, 50},
		{"tall.png", pngOf(t, gradient(300, 900)), 33, 100},
		{"line.png", pngOf(t, gradient(2000, 1)), 100, 1},
		{"small.png", pngOf(t, gradient(8, 6)), 8, 6},
		{"noise.png", pngOf(t, noise(900, 900)), 100, 100},
		{"noise.jpg", jpegOf(t, noise(900, 900)), 100, 100},
		{"half.jpg", jpegOf(t, gradient(300, 200)), 100, 66},
		{"small.jpg", jpegOf(t, gradient(150, 90)), 100, 60},
	} {
		p := prepare(t, c, postern.KindImage, file(t, tt.name, tt.content))
		if p.File != "" || len(p.Thumbnail) > media.MaxThumbnail {
			t.Errorf("%s: converted to %q, thumbnail of %d bytes", tt.name, p.File, len(p.Thumbnail))
		}
		if got := sizeOf(t, p.Thumbnail); got != image.Pt(tt.width, tt.height) {
			t.Errorf("%s: thumbnail of %v, want %d × %d", tt.name, got, tt.width, tt.height)
		}
		if want := "image/" + strings.Replace(tt.name[len(tt.name)-3:], "jpg", "jpeg", 1); p.MIMEType != want {
			t.Errorf("%s: type %q", tt.name, p.MIMEType)
		}
	}
}

// A picture of which all pixels would need too much memory has a thumbnail nevertheless.
func TestLargeJPEGFilesHaveAThumbnail(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	content := jpegOf(t, image.NewGray(image.Rect(0, 0, 9000, 9000)))
	c, path := withoutFFmpeg(t), file(t, "large.jpg", content)
	before := allocated()
	p := prepare(t, c, postern.KindImage, path)
	if grown := allocated() - before; grown > 9000*9000/8 {
		t.Errorf("%d bytes were allocated", grown)
	}
	if p.Width != 9000 || len(p.Thumbnail) == 0 || sizeOf(t, p.Thumbnail) != image.Pt(100, 100) {
		t.Errorf("the thumbnail has %d bytes, and the width is %d", len(p.Thumbnail), p.Width)
	}
}

// sizeOf decodes a JPEG.
func sizeOf(t *testing.T, content []byte) image.Point {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return img.Bounds().Size()
}

func TestTransparentPicturesHaveAWhiteGround(t *testing.T) {
	t.Parallel()
	p := prepare(t, withoutFFmpeg(t), postern.KindImage, file(t, "a.png", pngOf(t, image.NewNRGBA(image.Rect(0, 0, 50, 50)))))
	img, err := jpeg.Decode(bytes.NewReader(p.Thumbnail))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, _ := img.At(25, 25).RGBA(); r>>8 < 250 || g>>8 < 250 || b>>8 < 250 {
		t.Errorf("the ground is %v, want white", img.At(25, 25))
	}
}

func TestOtherPicturesBecomeJPEG(t *testing.T) {
	t.Parallel()
	c := withoutFFmpeg(t)
	lossy := made(t, "a.webp", "-f", "lavfi", "-i", "testsrc=s=200x100", "-frames:v", "1", "-c:v", "libwebp")
	moving := file(t, "a.gif", animation(t, 3))
	for path, size := range map[string]image.Point{lossy: image.Pt(200, 100), moving: image.Pt(40, 30)} {
		p := prepare(t, c, postern.KindImage, path)
		if p.MIMEType != "image/jpeg" || p.File == "" || p.Width != size.X || p.Height != size.Y {
			t.Fatalf("%s became %+v", path, p)
		}
		if got := sizeOf(t, read(t, p.File)); got != size {
			t.Errorf("%s became a picture of %v, want %v", path, got, size)
		}
	}
}

// animation is a GIF file of n frames.
func animation(t *testing.T, n int) []byte {
	t.Helper()
	palette := color.Palette{color.White, color.Black}
	var g gif.GIF
	for range n {
		g.Image = append(g.Image, image.NewPaletted(image.Rect(0, 0, 40, 30), palette))
		g.Delay = append(g.Delay, 1)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestOnlyTheFirstFrameOfAGIFIsDecoded(t *testing.T) {
	t.Parallel()
	content := animation(t, 10_000)
	control := []byte{0x21, 0xf9} // before each frame
	first := bytes.Index(content, control) + 2
	second := first + bytes.Index(content[first:], control)
	for i := second; i < len(content); i++ {
		content[i] = 0xee // a decoder that goes on finds no frame
	}
	if p := prepare(t, withoutFFmpeg(t), postern.KindImage, file(t, "a.gif", content)); p.Thumbnail == nil {
		t.Error("there is no thumbnail of the first frame")
	}
}

// TestImageBombsAreNotDecoded runs alone, because it measures the memory of the process.
func TestImageBombsAreNotDecoded(t *testing.T) { //nolint:paralleltest // see above
	small := pngOf(t, gradient(10, 10))
	c := withoutFFmpeg(t)
	for _, tt := range []struct {
		width, height uint32
		sent          bool
	}{
		{100_000, 100_000, false},
		{1<<31 - 1, 1<<31 - 1, false},
		{20_001, 5000, false},
		{10_000, 5000, true},
		{1, 24_000_000, true},
		{24_000_000, 1, true},
	} {
		path := file(t, "bomb.png", claiming(small, tt.width, tt.height))
		before := allocated()
		if tt.sent {
			if p := prepare(t, c, postern.KindImage, path); p.Thumbnail != nil || p.Width != int(tt.width) {
				t.Errorf("%d × %d: sent as %+v", tt.width, tt.height, p)
			}
		} else {
			refuse(t, c, postern.KindImage, path)
		}
		refuse(t, c, postern.KindSticker, path)
		if got, err := c.Describe(t.Context(), path); err != nil || got.MIMEType != "image/png" {
			t.Errorf("%d × %d: described as %+v, %v", tt.width, tt.height, got, err)
		}
		if grown := allocated() - before; grown > 1<<20 {
			t.Errorf("%d × %d: %d bytes were allocated", tt.width, tt.height, grown)
		}
	}
}

func TestDamagedPicturesAreRefused(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	whole := pngOf(t, noise(100, 100))
	photo := jpegOf(t, noise(100, 100))
	for name, content := range map[string][]byte{
		"half.png":   whole[:len(whole)/2],
		"head.png":   whole[:30],
		"magic.png":  whole[:8],
		"zero.png":   claiming(whole, 0, 10),
		"longer.png": claiming(whole, 200, 200),
		"head.jpg":   photo[:100],
		"script.gif": []byte("GIF89a/*<script>*/=alert(1)"),
		"riff.webp":  []byte("RIFF\x00\x00\x00\x00WEBPVP8 \xff\xff\xff\x7f"),
	} {
		for _, kind := range []postern.Kind{postern.KindImage, postern.KindSticker} {
			refuse(t, c, kind, file(t, name, content))
		}
	}
}

func TestDecodingEndsWithItsContextOrTimeout(t *testing.T) {
	t.Parallel()
	path := file(t, "a.png", pngOf(t, noise(500, 500)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := withoutFFmpeg(t).Prepare(ctx, postern.KindImage, path); !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: %v", err)
	}
	refuse(t, newConverter(t, media.Options{Timeout: time.Nanosecond}), postern.KindImage, path)
}

func TestPicturesBecomeStickers(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	for name, content := range map[string][]byte{
		"wide.png":   pngOf(t, gradient(300, 200)),
		"large.jpg":  jpegOf(t, gradient(2000, 1333)),
		"square.png": pngOf(t, noise(512, 512)),
	} {
		p := prepare(t, c, postern.KindSticker, file(t, name, content))
		sticker := read(t, p.File)
		img, err := webp.Decode(bytes.NewReader(sticker))
		if err != nil || img.Bounds().Size() != image.Pt(512, 512) || p.MIMEType != "image/webp" || p.Width != 512 {
			t.Fatalf("%s: %+v, %v", name, p, err)
		}
		if len(sticker) > 100_000 {
			t.Errorf("%s: the sticker has %d bytes", name, len(sticker))
		}
		_, _, _, corner := img.At(5, 5).RGBA()
		_, _, _, middle := img.At(256, 256).RGBA()
		if transparent := name != "square.png"; transparent != (corner == 0) || middle != 0xffff {
			t.Errorf("%s: transparency %x at the corner and %x in the middle", name, corner, middle)
		}
	}
	text := refuse(t, withoutFFmpeg(t), postern.KindSticker, file(t, "a.png", pngOf(t, gradient(9, 9))))
	if !strings.Contains(text, "ffmpeg") {
		t.Errorf("without ffmpeg: %q", text)
	}
}

func TestStickersOfTheRightSizeAreSentAsTheyAre(t *testing.T) {
	t.Parallel()
	still := []string{"-f", "lavfi", "-i", "testsrc=s=512x512", "-frames:v", "1", "-c:v", "libwebp"}
	moving := []string{"-f", "lavfi", "-i", "testsrc=s=512x512:r=5:d=1", "-c:v", "libwebp_anim"}
	c := withoutFFmpeg(t)
	if p := prepare(t, c, postern.KindSticker, made(t, "a.webp", still...)); p.File != "" || p.Animated || p.Height != 512 {
		t.Errorf("a still sticker is %+v", p)
	}
	if p := prepare(t, c, postern.KindSticker, made(t, "a.webp", moving...)); p.File != "" || !p.Animated {
		t.Errorf("a moving sticker is %+v", p)
	}
	moving[3] = "testsrc=s=300x200:r=5:d=1"
	refuse(t, c, postern.KindSticker, made(t, "a.webp", moving...))
	still[3] = "testsrc=s=300x200"
	if p := prepare(t, withFFmpeg(t), postern.KindSticker, made(t, "a.webp", still...)); p.File == "" || p.Animated {
		t.Errorf("a sticker of another size is %+v", p)
	}
}
