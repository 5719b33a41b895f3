package ogg

import (
	"encoding/binary"
	"fmt"
	"time"
)

const (
	sampleRate = 48_000 // of granule positions, whatever the rate of the audio was
	maxSamples = 5760   // of a packet: 120 ms
	maxFrame   = 1275   // bytes of a frame
)

// head is the first packet of a stream (RFC 7845, 5.1).
type head struct {
	raw      []byte
	channels int
	preSkip  int64 // samples at the start that are not heard
}

func parseHead(packet []byte) (head, error) {
	if len(packet) < 19 || string(packet[:8]) != "OpusHead" || packet[8]&0xf0 != 0 {
		return head{}, fmt.Errorf("%w: it does not start with OpusHead", ErrFormat)
	}
	h := head{
		raw:      append([]byte(nil), packet[:19]...),
		channels: int(packet[9]),
		preSkip:  int64(binary.LittleEndian.Uint16(packet[10:])),
	}
	if packet[18] != 0 || h.channels < 1 || h.channels > 2 {
		return head{}, fmt.Errorf("%w: it has more than two channels", ErrFormat)
	}
	return h, nil
}

// samplesOf is the duration of a packet in samples (RFC 6716, 3.1 and 3.2).
func samplesOf(packet []byte) (int64, error) {
	if len(packet) == 0 {
		return 0, fmt.Errorf("%w: a packet is empty", ErrFormat)
	}
	frames, code := int64(1), packet[0]&3
	switch {
	case code == 1 || code == 2:
		frames = 2
	case code == 3 && len(packet) < 2:
		return 0, fmt.Errorf("%w: a packet has no frame count", ErrFormat)
	case code == 3:
		frames = int64(packet[1] & 0x3f)
	case len(packet)-1 > maxFrame:
		return 0, fmt.Errorf("%w: a frame is too long", ErrFormat)
	}
	samples := frames * frameSamples(packet[0]>>3)
	if samples == 0 || samples > maxSamples {
		return 0, fmt.Errorf("%w: a packet has no possible duration", ErrFormat)
	}
	return samples, nil
}

// frameSamples is the duration of one frame of a configuration from 0 to 31.
func frameSamples(config byte) int64 {
	silk := [4]time.Duration{10, 20, 40, 60}
	switch {
	case config < 12:
		return int64(silk[config%4]) * sampleRate / 1000
	case config < 16:
		return int64(silk[config%2]) * sampleRate / 1000
	}
	return 120 << (config % 4) // 2.5, 5, 10 or 20 ms
}

// codeThree gives a packet of code 0 the framing of code 3 with one frame: the frame count
// is 1, without padding and with a constant bit rate. Other packets are returned as they are.
func codeThree(packet []byte) []byte {
	if packet[0]&3 != 0 {
		return packet
	}
	return append([]byte{packet[0] | 3, 1}, packet[1:]...)
}
