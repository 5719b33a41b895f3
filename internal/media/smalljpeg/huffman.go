package smalljpeg

import "math"

// lookup is how many bits of a code are looked up at once. Longer codes are rare.
const lookup = 10

// maxBits bounds a code together with the number behind it, whose size is in its symbol.
const maxBits = 16 + 15

// table decodes Huffman codes (ITU-T T.81, annex C).
type table struct {
	// fast has, for a code and anything behind it, the symbol << 8 | the bits of the code and its
	// number; 0 for longer codes.
	fast    [1 << lookup]uint16
	end     [17]uint32 // first code of a length, of 16 bits, that is no longer one
	offset  [17]int    // of the symbol of the code 0 of a length
	symbols []byte
}

// next returns the symbol of the code on top, and the bits of the code with its number: more
// than there can be if there is no such code.
func (t *table) next(bits uint64) (symbol byte, n int) {
	if found := t.fast[bits>>(64-lookup)]; found != 0 {
		return byte(found >> 8), int(found & 63)
	}
	return t.find(uint32(bits >> 48))
}

// newTable reads a table, and returns what follows it.
func newTable(b []byte) (*table, []byte, error) {
	if len(b) < 16 {
		return nil, nil, ErrUnsupported
	}
	t, code, total := &table{}, 0, 0
	for length := 1; length <= 16; length++ {
		n := int(b[length-1])
		t.offset[length] = total - code
		code, total = code+n, total+n
		if code > 1<<length {
			return nil, nil, ErrUnsupported
		}
		t.end[length] = uint32(code) << (16 - length) //nolint:gosec // at most 1 << length
		code <<= 1
	}
	rest := b[16:]
	if total == 0 || total > 256 || len(rest) < total {
		return nil, nil, ErrUnsupported
	}
	t.symbols = append(t.symbols, rest[:total]...)
	t.fill()
	return t, rest[total:], nil
}

// fill writes down the codes that are looked up at once.
func (t *table) fill() {
	for i := range t.fast {
		symbol, n := t.find(uint32(i) << (16 - lookup))
		if n-int(symbol&15) <= lookup {
			t.fast[i] = uint16(symbol)<<8 | uint16(n) //nolint:gosec // at most maxBits
		}
	}
}

// find is next for 16 bits, for codes of all lengths.
func (t *table) find(bits uint32) (symbol byte, n int) {
	for length := 1; length <= 16; length++ {
		if bits < t.end[length] {
			symbol = t.symbols[t.offset[length]+int(bits>>(16-length))]
			return symbol, length + int(symbol&15)
		}
	}
	return 0, math.MaxInt16
}
