package smalljpeg

import "image"

// maxSegment bounds what is read of a table, in bytes.
const maxSegment = 4096

// length reads how many bytes of a segment follow; -1 if that is nonsense.
func (d *decoder) length() int { return int(d.byte())<<8 + int(d.byte()) - 2 }

// each calls read, which returns what it has left, until a segment of n bytes is read.
func (d *decoder) each(n int, read func([]byte) ([]byte, error)) error {
	b, err := d.take(n)
	for err == nil && len(b) > 0 {
		b, err = read(b)
	}
	return err
}

// readQuant reads a table of the factors of frequencies.
func (d *decoder) readQuant(b []byte) ([]byte, error) {
	id, size := b[0]&15, 1+int(b[0]>>4)
	b = b[1:]
	if id > 3 || size > 2 || len(b) < 64*size {
		return nil, ErrUnsupported
	}
	for i := range d.quant[id] {
		d.quant[id][i] = uint16(b[i*size])
		if size == 2 {
			d.quant[id][i] = d.quant[id][i]<<8 | uint16(b[i*size+1])
		}
	}
	return b[64*size:], nil
}

func (d *decoder) readHuffman(b []byte) ([]byte, error) {
	class, id := b[0]>>4, b[0]&15
	if class > 1 || id > 3 {
		return nil, ErrUnsupported
	}
	t, rest, err := newTable(b[1:])
	d.huffman[class][id] = t
	return rest, err
}

// adobe reads how Adobe's programs say that colors are coded.
func (d *decoder) adobe(n int) error {
	if n > maxSegment {
		return d.skip(n)
	}
	const known, ycbcr = "Adobe", 1
	b, err := d.take(n)
	if err == nil && len(b) >= 12 && string(b[:5]) == known && b[11] != ycbcr {
		return ErrUnsupported
	}
	return err
}

// frame reads the size of the picture and its components, and chooses the size of the result.
func (d *decoder) frame(n int) error {
	b, err := d.take(n)
	if err != nil || d.components != nil || len(b) < 6 || b[0] != 8 {
		return ErrUnsupported
	}
	d.height, d.width = int(b[1])<<8|int(b[2]), int(b[3])<<8|int(b[4])
	count := int(b[5])
	if d.width == 0 || d.height == 0 || count != 1 && count != 3 || len(b) != 6+3*count {
		return ErrUnsupported
	}
	for b = b[6:]; len(b) > 0; b = b[3:] {
		d.components = append(d.components, component{id: b[0], h: int(b[1] >> 4), v: int(b[1] & 15), quant: b[2]})
	}
	return d.plan()
}

// plan chooses the size of the result and makes place for it.
func (d *decoder) plan() error {
	if !d.isUsual() {
		return ErrUnsupported
	}
	for d.scale = 1; d.scaled(max(d.width, d.height)) < d.side; d.scale++ {
		if d.scale == maxScale || d.progressive {
			return ErrUnsupported
		}
	}
	across, down := d.units()
	for i := range d.components {
		c := &d.components[i]
		c.stride = across * c.h * d.scale
		c.plane = make([]byte, c.stride*down*c.v*d.scale)
	}
	return nil
}

// isUsual reports whether the components are grey, or YCbCr with colors that have as many
// pixels as the brightness or fewer.
func (d *decoder) isUsual() bool {
	c := d.components
	for i := range c {
		if c[i].quant > 3 || len(c) == 3 && c[i].id == "RGB"[i] {
			return false
		}
	}
	if len(c) == 1 {
		c[0].h, c[0].v = 1, 1 // whatever the file says (ITU-T T.81, A.2.2)
		return true
	}
	_, ok := ratioOf(c[0].h, c[0].v)
	return ok && c[1].h == 1 && c[1].v == 1 && c[2].h == 1 && c[2].v == 1
}

// ratioOf names how the colors are scaled down.
func ratioOf(h, v int) (image.YCbCrSubsampleRatio, bool) {
	switch [2]int{h, v} {
	case [2]int{1, 1}:
		return image.YCbCrSubsampleRatio444, true
	case [2]int{1, 2}:
		return image.YCbCrSubsampleRatio440, true
	case [2]int{2, 1}:
		return image.YCbCrSubsampleRatio422, true
	case [2]int{2, 2}:
		return image.YCbCrSubsampleRatio420, true
	case [2]int{4, 1}:
		return image.YCbCrSubsampleRatio411, true
	case [2]int{4, 2}:
		return image.YCbCrSubsampleRatio410, true
	}
	return 0, false
}

// units returns how many units of blocks the picture has in each direction.
func (d *decoder) units() (across, down int) {
	h, v := 8*d.components[0].h, 8*d.components[0].v
	return (d.width + h - 1) / h, (d.height + v - 1) / v
}
