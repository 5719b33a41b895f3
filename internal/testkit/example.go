package testkit

import (
	"regexp"
	"time"
)

// exampleULID follows the prefix of every id in an example.
const exampleULID = "01JD8Z3NDEKTSV4RRFFQ69G5FA"

// changing lists the parts of a JSON text that differ between runs, and what an example
// shows instead.
func changing() [][2]string {
	return [][2]string{
		{`\b(ws|usr|key|dev|lnk|msg|med|ct|evt|whk|dlv|rpl|req)_[0-9A-HJKMNP-TV-Z]{26}`, "${1}_" + exampleULID},
		{`"whsec_[^"]+"`, `"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="`},
		{`"secretLastFour":"[^"]+"`, `"secretLastFour":"KYo="`},
		{`"lastFour":"[^"]+"`, `"lastFour":"2khk"`},
		{`"networkId":"[^"]+"`, `"networkId":"3EB0A1B2C3D4E5F60718"`},
		{`group:\d+`, "group:120363041234567890"},
		{`"call":{"id":"[^"]+"`, `"call":{"id":"3EB0A1B2C3D4E5F60718"`},
		{`"challenge":"[^"]+"`, `"challenge":"3q2-7wAAAAAAAAAAAAAAAA"`},
		{`"month":"[^"]+"`, `"month":"2026-11"`},
		{`"resetsAt":"[^"]+"`, `"resetsAt":"2026-12-01T00:00:00.000Z"`},
		{`"sequence":\d+`, `"sequence":17`},
		{`/link/[A-Za-z0-9_-]{43}"`, `/link/Jt3mHkq0s7c9oWf2Yv1xZb8uRa5eNd6gLpTiQwCyXzA"`},
		{`"phoneNumber":"[^"]+"`, `"phoneNumber":"+15550001111"`},
		{`"(nextCursor)":"[^"]+"`, `"$1":"eyJ2IjoxfQ"`},
	}
}

// instant matches a time in responses and events.
var instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

// Example replaces the ids, secrets and times in a JSON text by those of an example, so
// that all runs result in the same text. Times keep their distance from the earliest one,
// rounded to a minute, because a busy machine takes seconds.
func Example(text string) string {
	text = atExampleTimes(text)
	for _, c := range changing() {
		text = regexp.MustCompile(c[0]).ReplaceAllString(text, c[1])
	}
	return text
}

func atExampleTimes(text string) string {
	const layout = "2006-01-02T15:04:05.000Z"
	shown := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	var first time.Time
	for _, s := range instant.FindAllString(text, -1) {
		if at, err := time.Parse(layout, s); err == nil && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return instant.ReplaceAllStringFunc(text, func(s string) string {
		at, err := time.Parse(layout, s)
		if err != nil {
			return s
		}
		return shown.Add(at.Sub(first).Round(time.Minute)).Format(layout)
	})
}
