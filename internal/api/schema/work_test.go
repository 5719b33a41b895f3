package schema

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// TestWorkGrowsWithTheBody counts what a check does for bodies of one form and
// of two sizes: the values that it reads and the memory that it takes. Twice the
// body must not be more than about twice the work. No clock is read.
func TestWorkGrowsWithTheBody(t *testing.T) {
	c, s := prepared[everything](t)
	const n = 100 // members; an object of a body has at most 1000
	for name, form := range map[string]func(n int) string{
		"levels":             func(n int) string { return strings.Repeat("[", 1000*n) },
		"objects in objects": func(n int) string { return strings.Repeat(`{"a":`, 1000*n) },
		"labels":             func(n int) string { return `{"tags":{` + members(n, `"v"`) + `}}` },
		"unknown members":    func(n int) string { return `{"x":{` + members(n, `1`) + `}}` },
		"too many members":   func(n int) string { return `{` + members(20*n, `1`) + `}` },
		"digits":             func(n int) string { return `{"count":` + strings.Repeat("9", 1000*n) + `}` },
		"exponent":           func(n int) string { return `{"ratio":1e` + strings.Repeat("9", 1000*n) + `}` },
		"escapes":            func(n int) string { return `{"name":"` + strings.Repeat(`\ud83d\ude00`, 100*n) + `"}` },
		"half a surrogate":   func(n int) string { return `{"name":"` + strings.Repeat(`\u0061`, 100*n) + `\ud83d"}` },
		"items":              func(n int) string { return `{"x":[` + strings.Repeat("1,", 1000*n) + `1]}` },
		"choices":            func(n int) string { return `{"list":[` + strings.Repeat(`{"body":"a","type":"text"},`, n) + `1]}` },
		"late discriminator": func(n int) string {
			return `{"content":{"x":[` + strings.Repeat("1,", 1000*n) + `1],"type":"text","body":"a"}}`
		},
	} {
		small, large := work(t, c, s, form(n)), work(t, c, s, form(2*n))
		if small.values == 0 {
			t.Errorf("%s: nothing is read", name)
		}
		if large.values > 2*small.values+10 || large.bytes > 5*small.bytes/2+20_000 ||
			large.allocs > 5*small.allocs/2+100 {
			t.Errorf("%s: twice the body takes %+v instead of %+v", name, large, small)
		}
	}
}

// amount is how much a check did.
type amount struct {
	values        int
	bytes, allocs uint64
}

func (a amount) String() string {
	return fmt.Sprintf("%d values, %d bytes, %d allocations", a.values, a.bytes, a.allocs)
}

// work counts what one check of a body does.
func work(t *testing.T, c *Checker, s *huma.Schema, body string) (a amount) {
	t.Helper()
	w := walker{checker: c, dec: jsontext.NewDecoder(bytes.NewReader([]byte(body)))}
	_ = w.value(s) // what is wrong with a body does not matter here
	a = amount{w.values, math.MaxUint64, math.MaxUint64}
	var before, after runtime.MemStats
	for range 3 { // the smallest: the runtime allocates too
		runtime.ReadMemStats(&before)
		_ = c.Check([]byte(body), s)
		runtime.ReadMemStats(&after)
		a.bytes = min(a.bytes, after.TotalAlloc-before.TotalAlloc)
		a.allocs = min(a.allocs, after.Mallocs-before.Mallocs)
	}
	return a
}
