package web

import (
	"strconv"
	"strings"
)

// Content codings that the server knows, the preferred one first.
const (
	brotliCoding = "br"
	gzipCoding   = "gzip"
)

// coding returns the content coding for a client: the one that it prefers, or "" for an
// uncompressed response (RFC 9110, section 12.5.3). If it likes several equally, Brotli comes
// first, then gzip. A client that accepts none of ours gets the response uncompressed.
func coding(accept []string) string {
	weights := weightsOf(accept)
	best, most := "", weights["identity"]
	for _, name := range []string{gzipCoding, brotliCoding} {
		weight, named := weights[name]
		if !named {
			weight = weights["*"]
		}
		if weight > 0 && weight >= most {
			best, most = name, weight
		}
	}
	return best
}

// weightsOf returns the weight of each coding that the values of Accept-Encoding name.
func weightsOf(accept []string) map[string]float64 {
	weights := map[string]float64{}
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, params, _ := strings.Cut(part, ";")
		weights[strings.ToLower(strings.TrimSpace(name))] = weightOf(strings.ToLower(strings.TrimSpace(params)))
	}
	return weights
}

// weightOf reads "q=0.5". No parameter means 1, and what is malformed 0: not acceptable.
func weightOf(params string) float64 {
	if params == "" {
		return 1
	}
	text, is := strings.CutPrefix(params, "q=")
	q, err := strconv.ParseFloat(text, 64)
	if is && err == nil && q >= 0 && q <= 1 {
		return q
	}
	return 0
}

// hasTag tells whether the values of If-None-Match name an entity tag, by the weak comparison
// (RFC 9110, 13.1.2).
func hasTag(values []string, tag string) bool {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
