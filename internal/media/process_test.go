package media_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"postern/internal/media"
	"postern/internal/postern"
)

func TestProgramsThatHangAreEnded(t *testing.T) {
	t.Parallel()
	path := video(t)
	hanging := script(t, "exec sleep 1000")
	c := newConverter(t, media.Options{FFprobe: hanging, Timeout: 10 * time.Millisecond})
	if text := refuse(t, c, postern.KindVideo, path); !strings.Contains(text, "too long") {
		t.Errorf("a program that hangs: %q", text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	c = newConverter(t, media.Options{FFprobe: hanging})
	if _, err := c.Prepare(ctx, postern.KindVideo, path); !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: %v", err)
	}
}

func TestEndlessOutputIsCut(t *testing.T) {
	t.Parallel()
	endless := script(t, "exec yes")
	probe := script(t, `echo '{"streams":[{"codec_type":"audio"}]}'`)
	for kind, o := range map[postern.Kind]media.Options{
		postern.KindVideo: {FFprobe: endless}, postern.KindVoice: {FFprobe: probe, FFmpeg: endless},
	} {
		if text := refuse(t, newConverter(t, o), kind, video(t)); !strings.Contains(text, "too large") {
			t.Errorf("%s: %q", kind, text)
		}
	}
}

func TestProgramsSeeNoEnvironment(t *testing.T) { //nolint:paralleltest // sets a variable
	t.Setenv("POSTERN_TEST_SECRET", "sesame")
	seen := filepath.Join(t.TempDir(), "seen")
	c := newConverter(t, media.Options{FFprobe: script(t, "/usr/bin/env >"+seen+"; exit 1")})
	refuse(t, c, postern.KindVideo, video(t))
	if env := string(read(t, seen)); !strings.Contains(env, "LC_ALL=C") || strings.Contains(env, "sesame") {
		t.Errorf("the program saw %q", env)
	}
}

// A workspace whose files take long leaves a place to others.
func TestProcessesAreSharedOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newConverter(t, media.Options{
		Processes: 2, FFprobe: script(t, `case "$*" in *slow*) echo >`+started+`; exec sleep 1000;; esac; exit 1`),
	})
	slow := filepath.Join(dir, "slow.mp4")
	if err := os.Symlink(video(t), slow); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range 10 {
		all.Go(func() { _, _ = c.For("ws_1").Prepare(ctx, postern.KindVideo, slow) })
	}
	if b, err := os.ReadFile(started); err != nil || len(b) == 0 {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := c.For("ws_2").Prepare(t.Context(), postern.KindVideo, video(t)); postern.ReasonOf(err) !=
			postern.ValidationFailed {
			t.Errorf("the file of another workspace: %v", err)
		}
	}
}

func TestProcessesTakeTurns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	busy, overlap := filepath.Join(dir, "busy"), filepath.Join(dir, "overlap")
	probe := script(t, "mkdir "+busy+" || touch "+overlap+"; sleep 0.02; rmdir "+busy+"; exit 1")
	c := newConverter(t, media.Options{FFprobe: probe, Processes: 1})
	path := video(t)
	var done sync.WaitGroup
	for range 6 {
		done.Go(func() { refuse(t, c, postern.KindVideo, path) })
	}
	done.Wait()
	if _, err := os.Stat(overlap); !os.IsNotExist(err) {
		t.Error("two processes ran at a time")
	}
}

func TestFaultsOfTheServerAreNotBlamedOnTheFile(t *testing.T) {
	t.Parallel()
	c := newConverter(t, media.Options{FFprobe: script(t, "kill -9 $$")})
	if _, err := c.Prepare(t.Context(), postern.KindVideo, video(t)); postern.ReasonOf(err) != postern.Internal {
		t.Errorf("a program that was killed: %v", err)
	}
	c = newConverter(t, media.Options{FFmpeg: script(t, "echo unknown encoder libwebp >&2; exit 1")})
	_, err := c.Prepare(t.Context(), postern.KindSticker, file(t, "a.png", pngOf(t, gradient(9, 9))))
	if postern.ReasonOf(err) != postern.Internal || !strings.Contains(err.Error(), "libwebp") {
		t.Errorf("ffmpeg without WebP: %v", err)
	}
}
