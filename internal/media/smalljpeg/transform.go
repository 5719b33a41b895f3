package smalljpeg

import "math"

// zigzag is the place in a block of each frequency, in the order of the file (ITU-T T.81,
// figure 5).
//
//nolint:gochecknoglobals // a table
var zigzag = [64]int{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// maxScale bounds the pixels of the result for a block of 8 × 8. For more, image/jpeg is as fast.
const maxScale = 4

// unused is the place of the frequencies that are not kept.
const unused = maxScale * maxScale

// For each scale, places is where a frequency is kept, or unused, and lastKept is the last one
// that is kept.
//
//nolint:gochecknoglobals // tables
var (
	places   = [maxScale + 1][64]byte{1: placesOf(1), 2: placesOf(2), 3: placesOf(3), 4: placesOf(4)}
	lastKept = [maxScale + 1]int{2: 4, 3: 12, 4: 24}
	waves    = [maxScale + 1][maxScale][maxScale]float32{2: wavesOf(2), 3: wavesOf(3), 4: wavesOf(4)}
)

func placesOf(scale int) (list [64]byte) {
	for k, at := range zigzag {
		list[k] = unused
		if row, column := at/8, at%8; row < scale && column < scale {
			list[k] = byte(row*scale + column) //nolint:gosec // at most 15
		}
	}
	return list
}

// wavesOf returns the values of each frequency at each pixel (ITU-T T.81, A.3.3, with scale
// pixels instead of 8).
func wavesOf(scale int) (list [maxScale][maxScale]float32) {
	for x := range scale {
		for u := range scale {
			wave := math.Cos(float64((2*x+1)*u)*math.Pi/float64(2*scale)) / 2
			if u == 0 {
				wave /= math.Sqrt2
			}
			list[u][x] = float32(wave)
		}
	}
	return list
}

// transform turns the low frequencies of a block into scale × scale pixels.
func transform(low *[unused + 1]int32, scale int, to []byte, stride int) {
	wave := &waves[scale]
	var half [maxScale][maxScale]float32 // pixels across, frequencies down
	for v := range scale {
		row := low[v*scale : v*scale+scale]
		for u, f := range row {
			for x := range half[v] {
				half[v][x] += float32(f) * wave[u][x]
			}
		}
	}
	for y := range scale {
		var sum [maxScale]float32
		for v := range scale {
			for x := range sum {
				sum[x] += half[v][x] * wave[v][y]
			}
		}
		for x, out := 0, to[y*stride:y*stride+scale]; x < len(out); x++ {
			out[x] = level(sum[x])
		}
	}
}

// level makes a pixel from a number around zero.
func level(v float32) byte { return byte(min(max(v+128.5, 0), 255)) }
