package media_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"

	"postern/internal/media"
	"postern/internal/media/ogg"
	"postern/internal/postern"
)

// loudThenSilent makes audio of 2 s, of which only the first is loud.
func loudThenSilent(t *testing.T, name string, args ...string) string {
	t.Helper()
	input := []string{"-f", "lavfi", "-i", "aevalsrc=sin(2*PI*300*t)*lt(t\\,1):d=2:s=48000"}
	return made(t, name, append(input, args...)...)
}

func TestAnyAudioBecomesAVoiceMessage(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"a.wav", nil},
		{"a.flac", []string{"-ac", "2"}},
		{"a.mp3", nil},
		{"a.m4a", []string{"-c:a", "aac"}},
		{"a.ogg", []string{"-c:a", "libvorbis"}},
		{"stereo.ogg", []string{"-c:a", "libopus", "-ac", "2"}},
		{"a.webm", []string{"-c:a", "libopus"}},
	} {
		p := prepare(t, c, postern.KindVoice, loudThenSilent(t, tt.name, tt.args...))
		if p.MIMEType != "audio/ogg; codecs=opus" || p.Duration.Round(100*time.Millisecond) != 2*time.Second {
			t.Errorf("%s became %+v", tt.name, p)
		}
		found, err := ogg.Inspect(bytes.NewReader(read(t, p.File)))
		if err != nil || found.Channels != 1 || found.CodeZero || found.Duration != p.Duration {
			t.Errorf("%s became %+v, %v", tt.name, found, err)
		}
		checkWaveform(t, tt.name, p.Waveform)
	}
}

// checkWaveform compares a waveform with loudThenSilent.
func checkWaveform(t *testing.T, name string, bars []byte) {
	t.Helper()
	if len(bars) != 64 {
		t.Fatalf("%s: a waveform of %d values", name, len(bars))
	}
	for i, bar := range bars {
		loud := i > 1 && i < 29
		silent := i > 35
		if bar > 100 || loud && bar < 70 || silent && bar > 5 {
			t.Errorf("%s: bar %d is %d of %v", name, i, bar, bars)
		}
	}
}

func TestReframedVoiceSoundsTheSame(t *testing.T) {
	t.Parallel()
	original := loudThenSilent(t, "a.ogg", "-c:a", "libopus", "-ac", "1")
	p := prepare(t, withoutFFmpeg(t), postern.KindVoice, original)
	if p.File == "" || p.Waveform != nil {
		t.Fatalf("without ffmpeg: %+v", p)
	}
	want, got := pcm(t, original), pcm(t, p.File)
	if len(want) == 0 || !bytes.Equal(want, got) {
		t.Errorf("%d bytes of sound became %d others", len(want), len(got))
	}
}

// pcm decodes a file.
func pcm(t *testing.T, path string) []byte {
	t.Helper()
	return read(t, made(t, "a.raw", "-i", path, "-f", "s16le"))
}

func TestGoodVoiceIsSentAsItIs(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	converted := prepare(t, c, postern.KindVoice, loudThenSilent(t, "a.wav"))
	again := prepare(t, c, postern.KindVoice, converted.File)
	if again.File != "" || again.Duration != converted.Duration || !bytes.Equal(again.Waveform, converted.Waveform) {
		t.Errorf("prepared again, it is %+v; want %+v", again, converted)
	}
}

func TestAudioIsSentAsItIs(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	for name, want := range map[string]string{
		"a.mp3": "audio/mpeg", "a.m4a": "audio/mp4", "a.aac": "audio/aac", "a.ogg": "audio/ogg; codecs=opus",
	} {
		args := []string{}
		if name == "a.ogg" {
			args = []string{"-c:a", "libopus"}
		}
		p := prepare(t, c, postern.KindAudio, loudThenSilent(t, name, args...))
		if p.File != "" || p.MIMEType != want || p.Duration.Round(100*time.Millisecond) != 2*time.Second {
			t.Errorf("%s is %+v", name, p)
		}
	}
	song := loudThenSilent(t, "a.mp3")
	if p := prepare(t, withoutFFmpeg(t), postern.KindAudio, song); p.MIMEType != "audio/mpeg" || p.Duration != 0 {
		t.Errorf("without ffmpeg: %+v", p)
	}
}

func TestSilenceHasAFlatWaveform(t *testing.T) {
	t.Parallel()
	p := prepare(t, withFFmpeg(t), postern.KindVoice, made(t, "a.wav", "-f", "lavfi", "-i", "anullsrc", "-t", "0.5"))
	if !bytes.Equal(p.Waveform, make([]byte, 64)) {
		t.Errorf("the waveform of silence is %v", p.Waveform)
	}
}

func TestVoiceWithoutAudioIsRefused(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	mute := made(t, "a.mp4", "-f", "lavfi", "-i", "testsrc=d=1", "-pix_fmt", "yuv420p")
	if text := refuse(t, c, postern.KindVoice, mute); !strings.Contains(text, "no audio") {
		t.Errorf("a mute video: %q", text)
	}
	refuse(t, c, postern.KindVoice, made(t, "a.wav", "-f", "lavfi", "-i", "anullsrc", "-t", "0"))
	wav := loudThenSilent(t, "a.wav")
	if text := refuse(t, withoutFFmpeg(t), postern.KindVoice, wav); !strings.Contains(text, "this server has no ffmpeg") {
		t.Errorf("without ffmpeg: %q", text)
	}
}

// TestTenHoursAreNotBelieved changes what headers claim about a file of 2 s.
func TestTenHoursAreNotBelieved(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	for name, path := range map[string]string{
		"wav": falseWAV(t), "mp3": falseMP3(t), "ogg": falseOgg(t),
	} {
		p := prepare(t, c, postern.KindVoice, path)
		if p.Duration.Round(100*time.Millisecond) != 2*time.Second {
			t.Errorf("%s: voice lasts %v", name, p.Duration)
		}
		if d, err := c.Describe(t.Context(), path); err != nil || d.Duration > 2100*time.Millisecond {
			t.Errorf("%s: described as %v, %v", name, d.Duration, err)
		}
	}
}

// falseWAV claims 10 hours of samples.
func falseWAV(t *testing.T) string {
	t.Helper()
	path := loudThenSilent(t, "a.wav", "-ar", "8000", "-ac", "1")
	content := read(t, path)
	at := bytes.Index(content, []byte("data")) + 4
	binary.LittleEndian.PutUint32(content[at:], 10*3600*8000*2)
	binary.LittleEndian.PutUint32(content[4:], 10*3600*8000*2+uint32(at))
	return file(t, "a.wav", content)
}

// falseMP3 claims 10 hours of frames.
func falseMP3(t *testing.T) string {
	t.Helper()
	content := read(t, loudThenSilent(t, "a.mp3", "-q:a", "4"))
	at := max(bytes.Index(content, []byte("Xing")), bytes.Index(content, []byte("Info")))
	if at < 0 || content[at+7]&1 == 0 {
		t.Fatal("the file has no header with a number of frames")
	}
	binary.BigEndian.PutUint32(content[at+8:], 10*3600*48000/1152)
	return file(t, "a.mp3", content)
}

// falseOgg claims 10 hours on its last page, without a correct checksum, as ffmpeg takes it.
func falseOgg(t *testing.T) string {
	t.Helper()
	content := read(t, loudThenSilent(t, "a.ogg", "-c:a", "libopus", "-ac", "1"))
	last := content[bytes.LastIndex(content, []byte("OggS")):]
	binary.LittleEndian.PutUint64(last[6:], 10*3600*48000)
	return file(t, "a.ogg", content)
}

func TestVoiceLastsAtMostTwoHours(t *testing.T) {
	t.Parallel()
	probe := script(t, `echo '{"streams":[{"codec_type":"audio"}]}'`)
	fake := newConverter(t, media.Options{FFprobe: probe, FFmpeg: longVoice(t)})
	text := refuse(t, fake, postern.KindVoice, loudThenSilent(t, "a.wav"))
	if !strings.Contains(text, "two hours") {
		t.Errorf("three hours: %q", text)
	}
}

// longVoice is a program that writes three hours of silence as Opus.
func longVoice(t *testing.T) string {
	t.Helper()
	silence := file(t, "silence.ogg", silentOgg(3*time.Hour))
	return script(t, "exec cat "+silence)
}

func TestConvertedFilesAreRemovedAfterAFault(t *testing.T) {
	t.Parallel()
	c := newConverter(t, media.Options{FFmpeg: script(t, "echo half of a file; exit 1")})
	refuse(t, c, postern.KindVoice, loudThenSilent(t, "a.wav"))
	p := prepare(t, withFFmpeg(t), postern.KindVoice, loudThenSilent(t, "a.wav"))
	if err := p.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.File); !os.IsNotExist(err) {
		t.Errorf("Remove left %s: %v", p.File, err)
	}
	if err := os.WriteFile(p.File, nil, 0o600); err != nil { // for prepare, which removes it again
		t.Fatal(err)
	}
}
