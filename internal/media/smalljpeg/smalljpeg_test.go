package smalljpeg

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"golang.org/x/image/draw"
)

// fixture reads a file of testdata, all of which cjpeg of libjpeg-turbo made of one picture with
// 843 × 501 pixels, at a quality of 60.
func fixture(tb testing.TB, name string) []byte {
	tb.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// The result looks like the whole picture that is scaled down afterwards.
func TestSmallPicturesLookLikeLargeOnes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"420.jpg", "422-restart.jpg", "444.jpg", "440.jpg", "411.jpg", "grey.jpg",
		"progressive.jpg", "progressive-grey.jpg",
	} {
		file := fixture(t, name)
		whole, err := jpeg.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		for eighths, side := range map[int]int{1: 100, 2: 200, 3: 300, 4: 420} {
			small, err := Decode(iotest.HalfReader(bytes.NewReader(file)), side)
			if name[0] == 'p' && eighths > 1 {
				if !errors.Is(err, ErrUnsupported) {
					t.Errorf("%s at %d eighths: %v, want ErrUnsupported", name, eighths, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s at %d eighths: %v", name, eighths, err)
			}
			if want := image.Pt((843*eighths+7)/8, (501*eighths+7)/8); small.Bounds().Size() != want {
				t.Errorf("%s at %d eighths: size %v, want %v", name, eighths, small.Bounds().Size(), want)
			}
			grey, colors := difference(whole, small)
			if grey > 3 || colors > 6 {
				t.Errorf("%s at %d eighths: the levels differ by %.1f on average, those of colors by %.1f", name, eighths,
					grey, colors)
			}
		}
	}
}

// difference returns how much the levels of a small picture, from 0 to 255, differ on average
// from those of a large one that is scaled to its size: those of the brightness and of each color.
func difference(large, small image.Image) (grey, colors float64) {
	want, got := image.NewRGBA(small.Bounds()), image.NewRGBA(small.Bounds())
	draw.BiLinear.Scale(want, want.Bounds(), large, large.Bounds(), draw.Src, nil)
	draw.Draw(got, got.Bounds(), small, small.Bounds().Min, draw.Src)
	return apart(greyOf(want).Pix, greyOf(got).Pix), apart(want.Pix, got.Pix) * 4 / 3 // A does not differ
}

func greyOf(img image.Image) *image.Gray {
	grey := image.NewGray(img.Bounds())
	draw.Draw(grey, grey.Bounds(), img, img.Bounds().Min, draw.Src)
	return grey
}

func apart(a, b []byte) float64 {
	sum := 0
	for i := range a {
		sum += max(int(a[i])-int(b[i]), int(b[i])-int(a[i]))
	}
	return float64(sum) / float64(len(a))
}

// image/jpeg has the last word about what is unusual, too small or damaged.
func TestEverythingElseIsUnsupported(t *testing.T) {
	t.Parallel()
	photo, whole := fixture(t, "420.jpg"), fixture(t, "progressive.jpg")
	for name, file := range map[string][]byte{
		"nothing":            nil,
		"a text":             []byte("hello"),
		"only a start":       {0xff, 0xd8},
		"arithmetic coding":  fixture(t, "arithmetic.jpg"),
		"RGB":                fixture(t, "rgb.jpg"),
		"separate scans":     fixture(t, "separate-scans.jpg"),
		"without an end":     photo[:len(photo)-2],
		"half":               photo[:len(photo)/2],
		"half, with an end":  append(bytes.Clone(photo[:len(photo)/2]), 0xff, endOfFile),
		"half, progressive":  whole[:len(whole)/2],
		"a picture after it": append(bytes.Clone(photo[:len(photo)-2]), photo[2:]...),
		"a smaller picture":  noise(t, 190),
		"a repeated restart": bytes.Replace(fixture(t, "422-restart.jpg"), []byte{0xff, restart0 + 1},
			[]byte{0xff, restart0}, 1),
	} {
		if img, err := Decode(bytes.NewReader(file), 100); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v, %v", name, img != nil, err)
		}
	}
	if _, err := Decode(iotest.TimeoutReader(bytes.NewReader(noise(t, 848))), 100); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// A header that claims a large picture takes little memory until the picture comes.
func TestClaimsOfSizeTakeLittleMemory(t *testing.T) {
	t.Parallel()
	file := bytes.Clone(fixture(t, "grey.jpg"))
	size := bytes.Index(file, []byte{0xff, baseline}) + 5
	copy(file[size:], []byte{0x13, 0x88, 0x13, 0x88}) // 5000 × 5000
	d := &decoder{source: source{r: bytes.NewReader(file)}, side: 100}
	if err := d.decode(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a picture of which most is missing: %v", err)
	}
	if got := len(d.components[0].plane); got != 625*625 {
		t.Errorf("%d bytes are reserved, want an eighth of the size in each direction", got)
	}
}

// FuzzDecode compares with image/jpeg: what is decoded here has the same size there. Only of a
// progressive file the later scans may be damaged.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.jpg")
	if err != nil || len(files) == 0 {
		f.Fatalf("no files: %v", err)
	}
	for _, name := range files {
		f.Add(fixture(f, filepath.Base(name)))
	}
	f.Add(noise(f, 240))
	f.Fuzz(func(t *testing.T, file []byte) {
		config, err := jpeg.DecodeConfig(bytes.NewReader(file))
		if err != nil || config.Width*config.Height > 1<<22 {
			return
		}
		d := &decoder{source: source{r: bytes.NewReader(file)}, side: 100}
		if d.decode() != nil {
			return
		}
		small := d.picture().Bounds().Size()
		if want := image.Pt(d.scaled(config.Width), d.scaled(config.Height)); small != want {
			t.Errorf("the size is %v, want %v", small, want)
		}
		if err := draws(d.picture()); err != nil {
			t.Error(err)
		}
		if _, err := jpeg.Decode(bytes.NewReader(file)); err != nil && !d.progressive {
			t.Errorf("image/jpeg does not decode the file: %v", err)
		}
	})
}

// draws reads all pixels.
func draws(img image.Image) error {
	return jpeg.Encode(io.Discard, img, nil)
}
