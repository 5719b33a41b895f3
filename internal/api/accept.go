package api

import (
	"slices"
	"strconv"
	"strings"
)

// accepts tells whether a caller accepts one of the offered media types (RFC 9110,
// 12.5.1). Without an Accept header it accepts all; of several ranges, the most
// specific one counts.
func accepts(header, offers []string) bool {
	ranges := strings.Split(strings.Join(header, ","), ",")
	if strings.TrimSpace(strings.Join(ranges, "")) == "" {
		return true
	}
	return slices.ContainsFunc(offers, func(offer string) bool { return quality(ranges, offer) > 0 })
}

func quality(ranges []string, offer string) float64 {
	main, _, _ := strings.Cut(offer, "/")
	best, q := 0, 0.0
	for _, r := range ranges {
		name, params, _ := strings.Cut(r, ";")
		rank := slices.Index([]string{"*/*", main + "/*", offer}, strings.ToLower(strings.TrimSpace(name))) + 1
		if rank > best {
			best, q = rank, weight(params)
		}
	}
	return q
}

// weight returns the q of a range's parameters; 1 when it has none, or one that
// cannot be parsed.
func weight(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return q
			}
		}
	}
	return 1
}
