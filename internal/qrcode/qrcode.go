// Package qrcode renders QR codes that phones scan from a screen.
package qrcode

import (
	"bytes"
	"fmt"
	"strings"

	"rsc.io/qr"
)

const (
	quietZone = 4 // modules of white around the code, as ISO/IEC 18004 requires
	pixels    = 8 // intrinsic size of a module in an SVG, as in a PNG
)

// PNG renders a text as a PNG image. It fails if the text is too long for a QR code.
func PNG(text string) ([]byte, error) {
	c, err := encode(text)
	if err != nil {
		return nil, err
	}
	return c.PNG(), nil
}

// SVG renders a text as an SVG image. It fails if the text is too long for a QR code.
func SVG(text string) ([]byte, error) {
	c, err := encode(text)
	if err != nil {
		return nil, err
	}
	size := c.Size + 2*quietZone
	var b bytes.Buffer
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" shape-rendering="crispEdges">`,
		size*pixels, size*pixels, size, size)
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

// Text renders a text for a terminal, with two rows of modules per line. It draws the
// light modules, as for a dark screen. It fails if the text is too long for a QR code.
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

// encode uses the lowest redundancy, because it results in the largest modules, which
// cameras read best.
func encode(text string) (*qr.Code, error) {
	c, err := qr.Encode(text, qr.L)
	if err != nil {
		return nil, fmt.Errorf("render a QR code: %w", err)
	}
	return c, nil
}
