// Package smalljpeg decodes JPEG files at one to four eighths of their size, for thumbnails. It
// reads only the low frequencies of each block of 8 × 8 pixels, which takes a small part of the
// time and of the memory that image/jpeg needs for all pixels.
//
// It knows the files that cameras and phones write: Huffman coding with 8 bits, baseline or
// progressive, grey or YCbCr, all components in one scan. Everything else, and everything that
// looks damaged, is [ErrUnsupported]; image/jpeg has the last word about it.
package smalljpeg

import (
	"errors"
	"image"
	"io"
)

// ErrUnsupported means that a file is not what this package knows, or is damaged.
var ErrUnsupported = errors.New("smalljpeg: the file is damaged or of an unusual form")

// Decode decodes a JPEG file at the fewest eighths of its size for which the longer side has at
// least side pixels, rounded up. If these are more than four, the error is ErrUnsupported. Of a
// progressive file it reads the first scan, which is enough for an eighth, and checks only the
// structure of the others.
//
// Memory grows with the size that the header claims: it takes at most 3 bytes for each pixel of
// the result, whose sides are rounded up to whole blocks. The caller bounds it, and reads the
// header first.
func Decode(r io.Reader, side int) (image.Image, error) {
	d := &decoder{source: source{r: r}, side: side}
	if err := d.decode(); err != nil {
		return nil, err
	}
	return d.picture(), nil
}

// decoder decodes one file.
type decoder struct {
	source

	side        int
	width       int // pixels of the file
	height      int
	progressive bool
	scale       int // pixels of the result for a block of 8 × 8, in each direction: 1 to maxScale
	components  []component
	quant       [4][64]uint16 // in the order of the file
	huffman     [2][4]*table  // for the constant (0) and the other frequencies (1)
	restart     int           // units between two restarts; 0: there are none
	shift       uint          // of the constant frequency in a progressive file
}

// component is one channel of a picture.
type component struct {
	id     byte
	h, v   int // blocks in a unit of the scan
	quant  byte
	dc, ac *table
	last   int32 // constant frequency of the block before
	plane  []byte
	stride int
}

// markers are the second bytes of what separates the parts of a file; the first is 0xff.
const (
	startOfFile  = 0xd8
	endOfFile    = 0xd9
	baseline     = 0xc0
	extended     = 0xc1
	progressive  = 0xc2
	huffmanTable = 0xc4
	quantTable   = 0xdb
	interval     = 0xdd
	startOfScan  = 0xda
	restart0     = 0xd0
	adobe        = 0xee
	app0         = 0xe0
	comment      = 0xfe
)

// decode reads the file to its end.
func (d *decoder) decode() error {
	if d.byte() != 0xff || d.byte() != startOfFile {
		return ErrUnsupported
	}
	scanned := false
	for {
		marker, err := d.marker(scanned)
		switch {
		case err != nil:
			return err
		case marker == endOfFile && scanned:
			return nil
		case marker == startOfScan && !scanned:
			scanned, err = true, d.scan()
		case scanned && marker != comment && !d.progressive:
			return ErrUnsupported
		case scanned:
			err = d.skip(d.length())
		default:
			err = d.segment(marker)
		}
		if err != nil {
			return err
		}
	}
}

// marker returns the next marker. After a scan it may follow bytes of that scan.
func (d *decoder) marker(scanned bool) (byte, error) {
	for {
		b := d.byte()
		for scanned && b != 0xff && !d.ended {
			b = d.byte()
		}
		if b != 0xff {
			return 0, ErrUnsupported
		}
		for b == 0xff {
			b = d.byte()
		}
		if scanned && (b == 0 || b >= restart0 && b < restart0+8) {
			continue
		}
		if d.ended || b == 0 {
			return 0, ErrUnsupported
		}
		return b, nil
	}
}

// segment reads what comes before the scan.
func (d *decoder) segment(marker byte) error {
	switch n := d.length(); {
	case marker == adobe:
		return d.adobe(n)
	case marker >= app0 && marker < adobe, marker == adobe+1, marker == comment:
		return d.skip(n)
	case marker == quantTable:
		return d.each(n, d.readQuant)
	case marker == huffmanTable:
		return d.each(n, d.readHuffman)
	case marker == interval && n == 2:
		d.restart = int(d.byte())<<8 | int(d.byte())
		return nil
	case marker == baseline, marker == extended, marker == progressive:
		d.progressive = marker == progressive
		return d.frame(n)
	}
	return ErrUnsupported
}

// picture returns what was decoded.
func (d *decoder) picture() image.Image {
	bounds := image.Rect(0, 0, d.scaled(d.width), d.scaled(d.height))
	y := d.components[0]
	if len(d.components) == 1 {
		return &image.Gray{Pix: y.plane, Stride: y.stride, Rect: bounds}
	}
	ratio, _ := ratioOf(y.h, y.v)
	cb, cr := d.components[1], d.components[2]
	return &image.YCbCr{
		Y: y.plane, Cb: cb.plane, Cr: cr.plane, YStride: y.stride, CStride: cb.stride,
		SubsampleRatio: ratio, Rect: bounds,
	}
}

// scaled returns the pixels of the result for a side of the file.
func (d *decoder) scaled(n int) int { return (n*d.scale + 7) / 8 }
