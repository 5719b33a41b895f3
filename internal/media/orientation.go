package media

import (
	"bufio"
	"encoding/binary"
	"image"
	"io"
	"os"
)

// upright is the orientation of a picture that is shown as it is stored. There are 8: phones
// store what the sensor saw, and how it must be turned (Exif 2.3, tag 0x0112).
const upright = 1

// orientation reads how a JPEG file must be turned. Of other files, and of those that say
// nothing sensible, it is upright.
func orientation(path, mimeType string) int {
	f, err := os.Open(path) //nolint:gosec // the caller names the file, not a sender
	if err != nil || mimeType != "image/jpeg" {
		return upright
	}
	defer f.Close()
	return tiffOrientation(exif(bufio.NewReader(io.LimitReader(f, maxMetadata))))
}

// exif returns the metadata in a JPEG file, or nil. They are in a segment of at most 64 KiB
// before the picture.
func exif(r *bufio.Reader) []byte {
	const app1, scan = 0xe1, 0xda
	if _, err := r.Discard(2); err != nil {
		return nil
	}
	for {
		var header [4]byte // 0xff, the marker, the length with itself
		if _, err := io.ReadFull(r, header[:]); err != nil || header[0] != 0xff || header[1] == scan {
			return nil
		}
		length := int(binary.BigEndian.Uint16(header[2:])) - 2
		if length < 0 {
			return nil
		}
		segment := make([]byte, length)
		if _, err := io.ReadFull(r, segment); err != nil {
			return nil
		}
		if header[1] == app1 && length > 6 && string(segment[:6]) == "Exif\x00\x00" {
			return segment[6:]
		}
	}
}

// tiffOrientation looks the tag up in the first directory of a TIFF structure.
func tiffOrientation(b []byte) int {
	const tag, entrySize = 0x0112, 12
	if len(b) < 8 {
		return upright
	}
	var order binary.ByteOrder = binary.BigEndian
	if string(b[:2]) == "II" {
		order = binary.LittleEndian
	}
	start := uint64(order.Uint32(b[4:]))
	if start+2 > uint64(len(b)) {
		return upright
	}
	entries := b[start+2:]
	for range order.Uint16(b[start:]) {
		if len(entries) < entrySize {
			return upright
		}
		if value := int(order.Uint16(entries[8:])); order.Uint16(entries) == tag && value >= 1 && value <= 8 {
			return value
		}
		entries = entries[entrySize:]
	}
	return upright
}

// turnedSize is the size of a picture as it is shown.
func turnedSize(size image.Point, o int) image.Point {
	if o >= 5 {
		return image.Pt(size.Y, size.X)
	}
	return size
}

// turned returns a small picture as it is shown.
func turned(img image.Image, o int) image.Image {
	if o == upright {
		return img
	}
	from := img.Bounds()
	size := turnedSize(from.Size(), o)
	out := image.NewRGBA(image.Rectangle{Max: size})
	for y := range size.Y {
		for x := range size.X {
			at := storedAt(image.Pt(x, y), from.Size(), o)
			out.Set(x, y, img.At(from.Min.X+at.X, from.Min.Y+at.Y))
		}
	}
	return out
}

// storedAt is where a pixel of a turned picture is in the stored one, for each orientation.
func storedAt(p, size image.Point, o int) image.Point {
	right, bottom := size.X-1, size.Y-1
	switch o {
	case 2:
		return image.Pt(right-p.X, p.Y)
	case 3:
		return image.Pt(right-p.X, bottom-p.Y)
	case 4:
		return image.Pt(p.X, bottom-p.Y)
	case 5:
		return image.Pt(p.Y, p.X)
	case 6:
		return image.Pt(p.Y, bottom-p.X)
	case 7:
		return image.Pt(right-p.Y, bottom-p.X)
	case 8:
		return image.Pt(right-p.Y, p.X)
	default:
		return p
	}
}
