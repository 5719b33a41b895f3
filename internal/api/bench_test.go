package api_test

import (
	"net/http"
	"strings"
	"testing"

	"postern/internal/postern"
)

// BenchmarkWorstBodies measures bodies that cost the most to refuse.
func BenchmarkWorstBodies(b *testing.B) {
	mine := newServer(b).tenant("enterprise")
	device := string(mine.device("d", postern.Unlinked))
	names := func() string {
		var s strings.Builder
		for i := range 90_000 {
			s.WriteString(`"` + string(rune('a'+i%26)) + string(rune(0x4e00+i/26)) + `":1,`)
		}
		return strings.TrimSuffix(s.String(), ",")
	}
	for name, body := range map[string]string{
		"half a million numbers": `{"metadata":{"a":[` + strings.Repeat("1,", 500_000) + `1]}}`,
		"unknown members":        `{` + names() + `}`,
		"labels":                 `{"metadata":{` + names() + `}}`,
		"levels":                 strings.Repeat("[", 1<<20),
		"long text":              `{"deviceId":"` + device + `","to":"x","body":"` + strings.Repeat("a", 1<<20-100) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if a := mine.do("POST", "/v1/messages", body); a.Code < http.StatusBadRequest ||
					a.Code >= http.StatusInternalServerError {
					b.Fatal(a.Code, a.Body)
				}
			}
		})
	}
}

// BenchmarkListDevices takes a new workspace before the rate of one is used up.
func BenchmarkListDevices(b *testing.B) {
	s := newServer(b)
	b.ReportAllocs()
	var mine *tenant
	for n := range b.N {
		if n%25_000 == 0 {
			b.StopTimer()
			mine = s.tenant("enterprise")
			for range 5 {
				mine.device("d", postern.Unlinked)
			}
			b.StartTimer()
		}
		if a := mine.do("GET", "/v1/devices", ""); a.Code != http.StatusOK {
			b.Fatal(a.Code)
		}
	}
}
