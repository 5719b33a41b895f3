package spectest_test

import (
	"strings"
	"testing"

	"postern/internal/api"
	"postern/internal/api/spec/spectest"
)

// TestEventsAreComparedWithTheirType has an event that is right, and some that are almost right.
func TestEventsAreComparedWithTheirType(t *testing.T) {
	t.Parallel()
	doc, err := api.Document("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := spectest.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	const event = `{"eventId":"evt_1","type":"webhook.verification","timestamp":"2026-11-21T09:00:00.000Z",` +
		`"deviceId":"","challenge":"x"}`
	for change, bad := range map[string]string{
		"": "",
		`"type":"webhook.verification"=>"type":"webhook.unknown"`: "webhook.unknown",
		`"type":"webhook.verification"=>"type":"webhook.test"`:    "challenge",
		`,"challenge":"x"=>`:                 "challenge",
		`"challenge":"x"=>"challenge":1`:     "challenge",
		`"challenge"=>"other":1,"challenge"`: "other",
		`2026-11-21T=>2026-11-21 `:           "timestamp",
		`}=>`:                                "unexpected end",
	} {
		from, to, _ := strings.Cut(change, "=>")
		err := s.ValidEvent([]byte(strings.Replace(event, from, to, 1)))
		if (bad == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v, want %q", change, err, bad)
		}
	}
}
