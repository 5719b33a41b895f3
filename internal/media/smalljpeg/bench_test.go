package smalljpeg

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"syscall"
	"testing"
)

// noise returns a grey JPEG file without any pattern, which has the most frequencies.
func noise(b testing.TB, side int) []byte {
	b.Helper()
	img := image.NewGray(image.Rect(0, 0, side, side))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Uint32())
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, img, &jpeg.Options{Quality: 90}); err != nil {
		b.Fatal(err)
	}
	return file.Bytes()
}

func BenchmarkDecode(b *testing.B) {
	for _, side := range []int{272, 848} {
		file := noise(b, side)
		b.Run(fmt.Sprintf("small %d", side), func(b *testing.B) {
			measure(b, func() error { _, err := Decode(bytes.NewReader(file), 100); return err })
		})
		b.Run(fmt.Sprintf("whole %d", side), func(b *testing.B) {
			measure(b, func() error { _, err := jpeg.Decode(bytes.NewReader(file)); return err })
		})
	}
}

// measure reports the processor time, which says more than the time on a machine that is busy.
func measure(b *testing.B, do func() error) {
	b.Helper()
	b.ReportAllocs()
	before := used(b)
	for b.Loop() {
		if err := do(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(used(b)-before)/float64(b.N)/1000, "µs-cpu/op")
}

// used returns the processor time of the process, in nanoseconds.
func used(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
