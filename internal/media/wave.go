package media

import "time"

// wave turns audio into bars of loudness. It takes samples of 16 bits, little-endian, and
// keeps only one sum per bar.
type wave struct {
	sums   [waveformSize]float64 // of the absolute samples
	counts [waveformSize]float64
	total  int64 // samples that are expected
	seen   int64
	half   []byte // of a sample that was cut
}

func newWave(length time.Duration) *wave {
	return &wave{total: max(1, int64(length*waveformRate/time.Second))}
}

// Write adds samples. Those beyond the expected length count for the last bar.
func (w *wave) Write(p []byte) (int, error) {
	written := len(p)
	if len(w.half) == 1 && len(p) > 0 {
		w.add(w.half[0], p[0])
		w.half, p = nil, p[1:]
	}
	for ; len(p) >= 2; p = p[2:] {
		w.add(p[0], p[1])
	}
	w.half = append(w.half, p...)
	return written, nil
}

func (w *wave) add(low, high byte) {
	bar := min(w.seen*waveformSize/w.total, waveformSize-1)
	sample := float64(int16(uint16(low) | uint16(high)<<8)) //nolint:gosec // two's complement
	w.sums[bar] += max(sample, -sample)
	w.counts[bar]++
	w.seen++
}

// bars returns values from 0 to 100; the loudest bar has 100, unless all are silent.
func (w *wave) bars() []byte {
	var loudest float64
	for i := range w.sums {
		w.sums[i] /= max(w.counts[i], 1)
		loudest = max(loudest, w.sums[i])
	}
	bars := make([]byte, waveformSize)
	for i, sum := range w.sums {
		if loudest > silence {
			bars[i] = byte(100 * sum / loudest)
		}
	}
	return bars
}
