package ogg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// voice is 2.345 s of mono, made with libopus: packets of 20 ms and code 0.
func voice(t testing.TB) []byte { return fixture(t, "testdata/voice.ogg") }

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStreamIsDescribedByItsPackets(t *testing.T) {
	t.Parallel()
	got, err := Inspect(bytes.NewReader(voice(t)))
	if err != nil || got.Duration.Round(time.Millisecond) != 2345*time.Millisecond || got.Channels != 1 || !got.CodeZero {
		t.Errorf("Inspect = %+v, %v", got, err)
	}
	got, err = Inspect(bytes.NewReader(fixture(t, "testdata/stereo.ogg")))
	if err != nil || got.Channels != 2 {
		t.Errorf("Inspect = %+v, %v; want 2 channels", got, err)
	}
}

func TestRewriteChangesOnlyTheFraming(t *testing.T) {
	t.Parallel()
	in := voice(t)
	var out bytes.Buffer
	stream, err := Rewrite(&out, bytes.NewReader(in))
	if err != nil || stream.CodeZero {
		t.Fatalf("Rewrite = %+v, %v", stream, err)
	}
	before, after := packets(t, in), packets(t, out.Bytes())
	if len(before) != len(after) {
		t.Fatalf("%d packets became %d", len(before), len(after))
	}
	for i := range before {
		want := append([]byte{before[i][0] | 3, 1}, before[i][1:]...)
		if !bytes.Equal(after[i], want) {
			t.Fatalf("packet %d became %x, want %x", i, after[i], want)
		}
	}
	if again, err := Inspect(&out); err != nil || again != stream {
		t.Errorf("the result is %+v, %v; want %+v", again, err, stream)
	}
}

// packets returns the audio packets of a stream.
func packets(t *testing.T, stream []byte) [][]byte {
	t.Helper()
	var all [][]byte
	_, err := walk(bytes.NewReader(stream), func(packet []byte, samples int64) error {
		if samples > 0 {
			all = append(all, bytes.Clone(packet))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPacketsOfEverySize makes pages that are full by segments, by time, and packets that
// need several pages of segments.
func TestPacketsOfEverySize(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 254, 255, 256, 509, 510, 1276} {
		in := build(t, 60, func(int) []byte { return bytes.Repeat([]byte{8}, size) })
		var out bytes.Buffer
		stream, err := Rewrite(&out, bytes.NewReader(in))
		if err != nil {
			t.Fatalf("packets of %d bytes: %v", size, err)
		}
		again, err := Inspect(bytes.NewReader(out.Bytes()))
		if err != nil || again != stream || len(packets(t, out.Bytes())) != 60 {
			t.Errorf("packets of %d bytes became %+v, %v; want %+v", size, again, err, stream)
		}
	}
}

// build makes a stream of n packets.
func build(t *testing.T, n int, packet func(i int) []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := newWriter(&b)
	if err := w.header(packetHead(1, 0)); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.audio(packet(i), 960); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(w.position); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packetHead(channels, family byte) []byte {
	h := append([]byte("OpusHead"), 1, channels, 0, 0, 0x80, 0x3e, 0, 0, 0, 0, family)
	return h
}

func TestDurationsOfPackets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		packet []byte
		want   int64 // samples; 0 if it is refused
	}{
		{[]byte{0 << 3}, 480},
		{[]byte{3 << 3}, 2880},
		{[]byte{12 << 3}, 480},
		{[]byte{15 << 3}, 960},
		{[]byte{16 << 3}, 120},
		{[]byte{31 << 3}, 960},
		{[]byte{31<<3 | 1}, 1920},
		{[]byte{31<<3 | 2, 0}, 1920},
		{[]byte{31<<3 | 3, 6}, 5760},
		{[]byte{3<<3 | 3, 2}, 5760},
		{[]byte{3<<3 | 3, 3}, 0},
		{[]byte{31<<3 | 3, 7}, 0},
		{[]byte{31<<3 | 3, 0}, 0},
		{[]byte{31<<3 | 3}, 0},
		{nil, 0},
		{make([]byte, 1277), 0},
	} {
		got, err := samplesOf(tt.packet)
		if got != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("packet %.4x has %d samples, %v; want %d", tt.packet, got, err, tt.want)
		}
	}
}

func TestFalseLengthIsNotBelieved(t *testing.T) {
	t.Parallel()
	want, err := Inspect(bytes.NewReader(voice(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range []int64{10 * 3600 * sampleRate, 1 << 62, -1 << 62, -1, 0, 1000} {
		got, err := Inspect(bytes.NewReader(claiming(t, voice(t), claim)))
		if err != nil || got.Duration < want.Duration || got.Duration > want.Duration+20*time.Millisecond {
			t.Errorf("with a claim of %d samples: %v, %v; want %v", claim, got.Duration, err, want.Duration)
		}
	}
}

// claiming changes the granule position of the last page.
func claiming(t *testing.T, stream []byte, granule int64) []byte {
	t.Helper()
	stream = bytes.Clone(stream)
	last := stream[bytes.LastIndex(stream, []byte("OggS")):]
	binary.LittleEndian.PutUint64(last[6:], uint64(granule))
	clear(last[22:26])
	binary.LittleEndian.PutUint32(last[22:], checksum(last))
	return stream
}

func TestBrokenStreamsAreRefused(t *testing.T) {
	t.Parallel()
	whole := voice(t)
	changed := bytes.Clone(whole)
	changed[len(changed)/2] ^= 1
	second := bytes.LastIndex(whole, []byte("OggS"))
	for name, in := range map[string][]byte{
		"empty":              nil,
		"text":               []byte("hello, this is no audio at all, only text"),
		"cut":                whole[:len(whole)-10],
		"only the head":      whole[:second/2],
		"a changed bit":      changed,
		"two streams":        append(bytes.Clone(whole), build(t, 3, func(int) []byte { return []byte{8} })...),
		"no audio":           build(t, 0, nil),
		"an empty packet":    build(t, 1, func(int) []byte { return nil }),
		"an endless packet":  build(t, 1, func(int) []byte { return make([]byte, 60_000) }),
		"surround":           head8(t),
		"a month of silence": month(t),
	} {
		if got, err := Rewrite(io.Discard, bytes.NewReader(in)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %+v, %v; want ErrFormat", name, got, err)
		}
	}
}

func head8(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := newWriter(&b).header(packetHead(8, 1)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// month is a small file that claims, packet for packet, more than a day.
func month(t *testing.T) []byte {
	t.Helper()
	return build(t, 800_000, func(int) []byte { return []byte{31<<3 | 3, 6} })
}

func FuzzRewrite(f *testing.F) {
	f.Add(voice(f))
	f.Add(fixture(f, "testdata/stereo.ogg"))
	f.Add([]byte("OggS"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		stream, err := Rewrite(&out, bytes.NewReader(in))
		if err != nil {
			return
		}
		again, err := Inspect(&out)
		if err != nil || again != stream {
			t.Errorf("the result is %+v, %v; want %+v", again, err, stream)
		}
	})
}
