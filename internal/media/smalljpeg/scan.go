package smalljpeg

// scan decodes the scan that contains all components.
func (d *decoder) scan() error {
	if err := d.scanHeader(); err != nil {
		return err
	}
	across, down := d.units()
	for unit := range across * down {
		if d.restart > 0 && unit > 0 && unit%d.restart == 0 {
			if err := d.restarts(byte(unit/d.restart-1) % 8); err != nil { //nolint:gosec // the rest counts
				return err
			}
		}
		if err := d.unit(unit%across, unit/across); err != nil {
			return err
		}
	}
	return nil
}

// scanHeader reads which tables the components use.
func (d *decoder) scanHeader() error {
	n := len(d.components)
	b, err := d.take(d.length())
	if err != nil || n == 0 || len(b) != 4+2*n || int(b[0]) != n {
		return ErrUnsupported
	}
	for i := range d.components {
		c, id, tables := &d.components[i], b[1+2*i], b[2+2*i]
		if id != c.id || tables>>4 > 3 || tables&15 > 3 {
			return ErrUnsupported
		}
		c.dc, c.ac = d.huffman[0][tables>>4], d.huffman[1][tables&15]
		if c.dc == nil || c.ac == nil && !d.progressive {
			return ErrUnsupported
		}
	}
	first, last, bits := b[1+2*n], b[2+2*n], b[3+2*n]
	d.shift = uint(bits & 15)
	if first != 0 || bits>>4 != 0 || d.progressive != (last == 0) || !d.progressive && (last != 63 || bits != 0) {
		return ErrUnsupported
	}
	return nil
}

// restarts reads the marker at which decoding begins anew.
func (d *decoder) restarts(n byte) error {
	if d.have >= 8 || d.byte() != 0xff || d.byte() != restart0+n {
		return ErrUnsupported
	}
	d.bits, d.have = 0, 0
	for i := range d.components {
		d.components[i].last = 0
	}
	return nil
}

// unit decodes the blocks of all components for one part of the picture.
func (d *decoder) unit(x, y int) error {
	for i := range d.components {
		c := &d.components[i]
		for block := range c.h * c.v {
			row, column := y*c.v+block/c.h, x*c.h+block%c.h
			if err := d.block(c, c.plane[(row*c.stride+column)*d.scale:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// block decodes a block into a plane.
func (d *decoder) block(c *component, to []byte) error {
	var low [unused + 1]int32 // the low frequencies, in rows of d.scale
	if err := d.constant(c); err != nil {
		return err
	}
	low[0] = c.last << d.shift * int32(d.quant[c.quant][0])
	if !d.progressive {
		if err := d.frequencies(c, &low); err != nil {
			return err
		}
	}
	if d.scale == 1 {
		to[0] = level(float32(low[0]) / 8)
		return nil
	}
	transform(&low, d.scale, to, c.stride)
	return nil
}

// constant decodes how the constant frequency of a block differs from the last one.
func (d *decoder) constant(c *component) error {
	if d.have < maxBits {
		d.refill()
	}
	symbol, n := c.dc.next(d.bits)
	if symbol > 11 || n > d.have {
		return ErrUnsupported
	}
	c.last += signed(d.bits<<(n-int(symbol)), symbol)
	d.bits <<= n
	d.have -= n
	return nil
}

// frequencies decodes the other frequencies of a block, and keeps the low ones. The bits are in
// local variables, because nearly all of the time is spent here.
func (d *decoder) frequencies(c *component, low *[unused + 1]int32) error {
	kept, places, quant, ac := lastKept[d.scale], &places[d.scale], &d.quant[c.quant], c.ac
	bits, have := d.bits, d.have
	defer func() { d.bits, d.have = bits, have }()
	for k := 1; k < 64; k++ {
		if have < maxBits {
			d.bits, d.have = bits, have
			d.refill()
			bits, have = d.bits, d.have
		}
		symbol, n := ac.next(bits)
		if n > have {
			return ErrUnsupported
		}
		size := symbol & 15
		if k += int(symbol >> 4); k <= kept {
			low[places[k]] = signed(bits<<(n-int(size)), size) * int32(quant[k])
		}
		bits, have = bits<<n, have-n
		switch {
		case size == 0 && symbol != sixteen:
			return nil
		case k > 63:
			return ErrUnsupported
		}
	}
	return nil
}

// sixteen is the symbol of 16 frequencies that are zero.
const sixteen = 0xf0

// signed reads a number of a size in bits from the top (ITU-T T.81, F.2.2.1). The size is at most 15.
func signed(bits uint64, size byte) int32 {
	value := int32(bits >> (64 - size)) //nolint:gosec // 15 bits
	if size > 0 && value < 1<<(size-1) {
		value += 1 - 1<<size
	}
	return value
}
