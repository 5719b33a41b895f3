package media

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measured is what ffprobe and ffmpeg find in a file.
type measured struct {
	width, height int // as shown; 0 without video
	duration      time.Duration
	video, audio  bool
	opus          bool // the audio is Opus
}

// probe is what ffprobe prints.
type probe struct {
	Streams []stream `json:"streams"`
	Format  struct {
		Duration string `json:"duration"` // seconds; absent if the container names none
	} `json:"format"`
}

type stream struct {
	Type        string `json:"codec_type"`
	Codec       string `json:"codec_name"`
	Width       int    `json:"width"`
	Height      int    `json:"height"`
	Disposition struct {
		Picture int `json:"attached_pic"`
	} `json:"disposition"`
	Side []struct {
		Rotation float64 `json:"rotation"`
	} `json:"side_data_list"`
}

// isVideo excludes the cover of a song.
func (s stream) isVideo() bool { return s.Type == "video" && s.Disposition.Picture == 0 }

func (s stream) isAudio() bool { return s.Type == "audio" }

// size is how large the video is shown: a phone that was held upright records a
// horizontal video and says that it must be turned.
func (s stream) size() (width, height int) {
	for _, side := range s.Side {
		if turned := int(side.Rotation) % 180; turned == 90 || turned == -90 {
			return s.Height, s.Width
		}
	}
	return s.Width, s.Height
}

// measure looks at the streams of a file, and at how long they really are.
func (c *Converter) measure(ctx context.Context, path, mimeType string) (measured, error) {
	p, err := c.probe(ctx, path, mimeType)
	if err != nil {
		return measured{}, err
	}
	m := p.measured()
	if !m.video && !m.audio || m.width > maxVideoSide || m.height > maxVideoSide {
		return measured{}, errDamaged()
	}
	found, err := c.walk(ctx, path, mimeType, m.video)
	if err != nil {
		return measured{}, err
	}
	if m.duration = believed(p.Format.Duration, found); m.duration <= 0 {
		return measured{}, errDamaged()
	}
	return m, nil
}

// measured is what the streams say about themselves.
func (p probe) measured() measured {
	var m measured
	if i := slices.IndexFunc(p.Streams, stream.isVideo); i >= 0 {
		m.video = true
		m.width, m.height = p.Streams[i].size()
	}
	if i := slices.IndexFunc(p.Streams, stream.isAudio); i >= 0 {
		m.audio, m.opus = true, p.Streams[i].Codec == "opus"
	}
	return m
}

// believed is what the header of a file claims as its duration if the packets confirm it,
// and otherwise what they say. They name when they begin, so the last one is missing.
func believed(claim string, found time.Duration) time.Duration {
	seconds, err := strconv.ParseFloat(claim, 64)
	if err != nil || seconds < found.Seconds() || seconds > found.Seconds()+lastPacket.Seconds() {
		return found
	}
	return time.Duration(seconds * float64(time.Second))
}

func (c *Converter) probe(ctx context.Context, path, mimeType string) (probe, error) {
	args := append([]string{
		"-v", "error", "-hide_banner", "-of", "json", "-show_entries",
		"format=duration:stream=codec_type,codec_name,width,height" +
			":stream_disposition=attached_pic:stream_side_data=rotation",
	}, source(path, mimeType)...)
	var out bytes.Buffer
	var p probe
	if err := c.run(ctx, c.ffprobe, nil, &bounded{&out, maxReport}, args); err != nil {
		return p, err
	}
	if err := json.Unmarshal(out.Bytes(), &p); err != nil {
		return p, errDamaged()
	}
	return p, nil
}

// walk goes through the packets of a file without decoding them, and returns the time at
// which the last one begins or ends. No packets are an error.
func (c *Converter) walk(ctx context.Context, path, mimeType string, video bool) (time.Duration, error) {
	track := "0:a:0"
	if video {
		track = "0:V:0" // V excludes covers
	}
	out := &tail{}
	args := append(source(path, mimeType),
		"-map", track, "-c", "copy", "-f", "null", "-nostats", "-progress", "pipe:1", "-")
	if err := c.runFFmpeg(ctx, nil, out, args...); err != nil {
		return 0, err
	}
	found, ok := lastTime(out.String())
	if !ok {
		return 0, errDamaged()
	}
	return found, nil
}

// lastTime is the last time that ffmpeg reports as its progress; false if there is none.
func lastTime(report string) (last time.Duration, ok bool) {
	for line := range strings.Lines(report) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), "out_time_us="); found {
			n, err := strconv.ParseInt(text, 10, 64)
			last, ok = time.Duration(n)*time.Microsecond, err == nil
		}
	}
	return last, ok
}
