package media_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"postern/internal/media"
	"postern/internal/postern"
)

// newConverter makes a Converter, and checks at the end that no file of it is left.
func newConverter(t *testing.T, o media.Options) *media.Converter {
	t.Helper()
	o.Scratch = t.TempDir()
	t.Cleanup(func() {
		left, err := os.ReadDir(o.Scratch)
		if err != nil || len(left) != 0 {
			t.Errorf("left in the directory for converted files: %v, %v", left, err)
		}
	})
	return media.New(o)
}

// withFFmpeg is a Converter with the programs of the machine.
func withFFmpeg(t *testing.T) *media.Converter {
	t.Helper()
	c := newConverter(t, media.Options{})
	if !c.HasFFmpeg() {
		t.Fatal("these tests need ffmpeg and ffprobe: apt-get install ffmpeg")
	}
	return c
}

// withoutFFmpeg is a Converter on a server without the programs.
func withoutFFmpeg(t *testing.T) *media.Converter {
	t.Helper()
	return newConverter(t, media.Options{FFmpeg: "/does/not/exist"})
}

// prepare prepares a file that must be accepted, and removes the converted copy at the end.
func prepare(t *testing.T, c *media.Converter, kind postern.Kind, path string) media.Prepared {
	t.Helper()
	p, err := c.Prepare(t.Context(), kind, path)
	if err != nil {
		t.Fatalf("%s as %s: %v", filepath.Base(path), kind, err)
	}
	t.Cleanup(func() {
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// refuse prepares a file that must not be accepted, and returns what is said about it.
func refuse(t *testing.T, c *media.Converter, kind postern.Kind, path string) string {
	t.Helper()
	p, err := c.Prepare(t.Context(), kind, path)
	if postern.ReasonOf(err) != postern.ValidationFailed {
		t.Errorf("%s as %s: %+v, %v; want a refusal", filepath.Base(path), kind, p, err)
		return ""
	}
	return err.Error()
}

// file writes content under a name in a new directory.
func file(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// made makes a file with ffmpeg. Equal arguments give a copy of the same file.
func made(t *testing.T, name string, args ...string) string {
	t.Helper()
	key := name + "\x00" + strings.Join(args, "\x00")
	content, _ := fixtures.LoadOrStore(key, sync.OnceValue(func() []byte { return run(t, name, args) }))
	return file(t, name, content.(func() []byte)())
}

var fixtures sync.Map // func() []byte by name and arguments

func run(t *testing.T, name string, args []string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	args = append(append([]string{"-v", "error"}, args...), path)
	if out, err := exec.CommandContext(t.Context(), "ffmpeg", args...).CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return read(t, path)
}

// script makes a program out of a shell script. No process may start meanwhile: it would inherit the
// open file, and the program could not be run before that process ends (https://go.dev/issue/22315).
func script(t *testing.T, text string) string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	path := file(t, "program", []byte("#!/bin/sh\n"+text+"\n"))
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// gradient is a smooth picture.
func gradient(w, h int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetNRGBA(x, y, color.NRGBA{uint8(255 * x / w), uint8(255 * y / h), 100, 255})
		}
	}
	return img
}

// noise is a picture that cannot be compressed.
func noise(w, h int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	_, _ = rand.NewChaCha8([32]byte{1}).Read(img.Pix)
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 255
	}
	return img
}

func pngOf(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegOf(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
