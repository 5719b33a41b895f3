package dbcopy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"
)

// sum is a checksum of rows that does not depend on their order: the sum of the first 128 bits of the
// hash of each row.
type sum struct {
	rows      int64
	high, low uint64
	buf       []byte
}

// add adds a row. Its values are what both drivers return for the types of our tables.
func (s *sum) add(row []any) error {
	b := s.buf[:0]
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = strconv.AppendInt(append(b, 'i'), v, 10)
		case string:
			b = append(strconv.AppendInt(append(b, 't'), int64(len(v)), 10), ':')
			b = append(b, v...)
		case []byte:
			b = append(strconv.AppendInt(append(b, 'b'), int64(len(v)), 10), ':')
			b = append(b, v...)
		default:
			return fmt.Errorf("a value of the type %T cannot be copied", v)
		}
		b = append(b, ';')
	}
	hash := sha256.Sum256(b)
	var carry uint64
	s.low, carry = bits.Add64(s.low, binary.BigEndian.Uint64(hash[8:]), 0)
	s.high, _ = bits.Add64(s.high, binary.BigEndian.Uint64(hash[:]), carry)
	s.rows++
	s.buf = b[:0]
	return nil
}

// is reports whether two sums are those of the same rows.
func (s *sum) is(other *sum) bool {
	return s.rows == other.rows && s.high == other.high && s.low == other.low
}

func (s *sum) text() string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, s.high), s.low))
}
