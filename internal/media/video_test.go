package media_test

import (
	"bytes"
	"image"
	"os"
	"strings"
	"testing"
	"time"

	"postern/internal/media"
	"postern/internal/postern"
)

// video makes an MP4 file of 3 s.
func video(t *testing.T, args ...string) string {
	t.Helper()
	input := []string{"-f", "lavfi", "-i", "testsrc=s=320x180:d=3:r=10", "-f", "lavfi", "-i", "sine=d=3"}
	return made(t, "a.mp4", append(append(input, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"), args...)...)
}

func TestVideosAreMeasuredAndGetAThumbnail(t *testing.T) {
	t.Parallel()
	p := prepare(t, withFFmpeg(t), postern.KindVideo, video(t))
	if p.File != "" || p.MIMEType != "video/mp4" || p.Width != 320 || p.Height != 180 ||
		p.Duration.Round(200*time.Millisecond) != 3*time.Second {
		t.Errorf("a video is %+v", p.Description)
	}
	if got := sizeOf(t, p.Thumbnail); got != image.Pt(100, 56) || len(p.Thumbnail) > media.MaxThumbnail {
		t.Errorf("thumbnail of %v with %d bytes", got, len(p.Thumbnail))
	}
}

func TestTurnedVideosAreMeasuredAsShown(t *testing.T) {
	t.Parallel()
	flat := video(t)
	turned := made(t, "b.mp4", "-i", flat, "-c", "copy", "-metadata:s:v:0", "rotate=90")
	p := prepare(t, withFFmpeg(t), postern.KindVideo, turned)
	if p.Width != 180 || p.Height != 320 {
		t.Errorf("a video of a phone held upright is %d × %d", p.Width, p.Height)
	}
	if got := sizeOf(t, p.Thumbnail); got != image.Pt(56, 100) {
		t.Errorf("its thumbnail is %v", got)
	}
}

func TestTruncatedVideos(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	whole := read(t, video(t))
	refuse(t, c, postern.KindVideo, file(t, "end.mp4", whole[:len(whole)/2])) // the index was at the end
	early := read(t, video(t, "-movflags", "+faststart"))
	data := bytes.Index(early, []byte("mdat"))
	refuse(t, c, postern.KindVideo, file(t, "empty.mp4", early[:data+8]))
	half := file(t, "half.mp4", early[:data+(len(early)-data)/2])
	p := prepare(t, c, postern.KindVideo, half)
	if p.Duration > 2500*time.Millisecond || p.Duration < 500*time.Millisecond { // of the video that is left
		t.Errorf("half of a video of 3 s lasts %v", p.Duration)
	}
}

func TestVideosWithoutVideo(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	silent := made(t, "a.mp4", "-f", "lavfi", "-i", "sine=d=1", "-c:a", "aac", "-brand", "isom")
	if text := refuse(t, c, postern.KindVideo, silent); !strings.Contains(text, "no video") {
		t.Errorf("a video without video: %q", text)
	}
	if p := prepare(t, c, postern.KindAudio, silent); p.MIMEType != "audio/mp4" {
		t.Errorf("as audio it is %+v", p.Description)
	}
	if text := refuse(t, c, postern.KindAudio, video(t)); !strings.Contains(text, "as a video") {
		t.Errorf("a video as audio: %q", text)
	}
}

func TestSingleFrameIsAVideo(t *testing.T) {
	t.Parallel()
	still := made(t, "a.mp4", "-f", "lavfi", "-i", "testsrc=s=64x64:r=1", "-frames:v", "1", "-pix_fmt", "yuv420p")
	if p := prepare(t, withFFmpeg(t), postern.KindVideo, still); p.Duration != time.Second {
		t.Errorf("one frame lasts %v", p.Duration)
	}
}

func TestVideosNeedFFmpeg(t *testing.T) {
	t.Parallel()
	text := refuse(t, withoutFFmpeg(t), postern.KindVideo, video(t))
	if !strings.Contains(text, "this server has no ffmpeg") {
		t.Errorf("without ffmpeg: %q", text)
	}
}

func TestGarbageAfterAGoodBeginningIsRefused(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	content := read(t, video(t))
	for i := 40; i < len(content); i++ {
		content[i] = byte(i * 7)
	}
	refuse(t, c, postern.KindVideo, file(t, "a.mp4", content))
	refuse(t, c, postern.KindVoice, file(t, "a.mp4", content))
}

// TestPlaylistsAreNotFollowed hides one behind the beginning of each type that ffmpeg may
// open. Ten seconds of sound would show that ffmpeg had read the file that the playlist names.
// (As AMR, any text is noise.)
func TestPlaylistsAreNotFollowed(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	canary := made(t, "canary.ts", "-f", "lavfi", "-i", "sine=d=10", "-c:a", "aac")
	hls := "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n" + canary + "\n#EXT-X-ENDLIST\n"
	concat := "ffconcat version 1.0\nfile '" + canary + "'\n"
	refuse(t, c, postern.KindVoice, file(t, "a.m3u8", []byte(hls)))
	refuse(t, c, postern.KindVoice, file(t, "a.concat", []byte(concat)))
	tag := "ID3\x03\x00\x00\x00\x00\x00\x0a" + strings.Repeat("\x00", 10) // ffmpeg skips it before it guesses
	for _, text := range []string{
		tag + hls, tag + concat, "\xff\xfb\x90\x00\n" + hls, "#!AMR\n" + hls, "fLaC\n" + hls,
		"\x00\x00\x00\x18ftypmp42\n" + hls,
	} {
		path := file(t, "a", []byte(text))
		refuse(t, c, postern.KindVoice, path)
		if d, err := c.Describe(t.Context(), path); err != nil || d.Duration > 5*time.Second {
			t.Errorf("%.20q: %+v, %v", text, d, err)
		}
	}
}

// TestNamesAreNoOptions uses names that mean something on a command line.
func TestNamesAreNoOptions(t *testing.T) { //nolint:paralleltest // changes the working directory
	content := read(t, video(t))
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"-y", "concat:a|b", "%03d", "a b'c\"d"} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if p := prepare(t, withFFmpeg(t), postern.KindVideo, name); p.Width != 320 {
			t.Errorf("%q: %+v", name, p.Description)
		}
	}
}
