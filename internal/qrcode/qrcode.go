// Package qrcode draws QR codes for phones to scan from a screen.
package qrcode

import (
	"bytes"
	"fmt"
	"strings"

	"rsc.io/qr"
)

const (
	quietZone = 4 // squares of white around the code, as ISO/IEC 18004 asks
	pixels    = 8 // of the intrinsic size of a square, as in the PNG
)

// PNG draws a text as a picture.
func PNG(text string) ([]byte, error) {
	c, err := encode(text)
	if err != nil {
		return nil, err
	}
	return c.PNG(), nil
}

// SVG draws a text as one path of dark runs.
func SVG(text string) ([]byte, error) {
	c, err := encode(text)
	if err != nil {
		return nil, err
	}
	size := c.Size + 2*quietZone
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" shape-rendering="crispEdges">`, size*pixels, size*pixels, size, size)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/><path fill="#000" d="`, size, size)
	for y := range c.Size {
		for x := 0; x < c.Size; x++ {
			run := 0
			for c.Black(x+run, y) {
				run++
			}
			if run > 0 {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", x+quietZone, y+quietZone, run, run)
				x += run
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return b.Bytes(), nil
}

// Text draws a text for a terminal, two rows of squares in a line. Light squares
// are drawn, as on a dark screen.
func Text(text string) (string, error) {
	c, err := encode(text)
	if err != nil {
		return "", err
	}
	light := func(x, y int) int {
		if y >= c.Size+quietZone || c.Black(x, y) {
			return 0
		}
		return 1
	}
	halves := []string{" ", "▀", "▄", "█"}
	var b strings.Builder
	for y := -quietZone; y < c.Size+quietZone; y += 2 {
		for x := -quietZone; x < c.Size+quietZone; x++ {
			b.WriteString(halves[light(x, y)+2*light(x, y+1)])
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// encode takes the lowest redundancy: it makes the largest squares, which
// cameras read best.
func encode(text string) (*qr.Code, error) {
	c, err := qr.Encode(text, qr.L)
	if err != nil {
		return nil, fmt.Errorf("draw a QR code: %w", err)
	}
	return c, nil
}
