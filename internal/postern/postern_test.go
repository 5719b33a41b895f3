package postern

import (
	"cmp"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestKeysHaveTheirFormAndATypoIsSeen(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 200 {
		k := NewKeySecret()
		if len(k) != 42 || !strings.HasPrefix(k, "pst_") || !WellFormedKey(k) || seen[k] {
			t.Fatalf("NewKeySecret() = %q", k)
		}
		seen[k] = true
		for i := range k {
			b := []byte(k)
			if b[i]++; WellFormedKey(string(b)) {
				t.Fatalf("%q passes for %q", b, k)
			}
		}
	}
	for _, s := range []string{"", "pst_", strings.Repeat("x", 42), NewKeySecret() + "0", " " + NewKeySecret()} {
		if WellFormedKey(s) {
			t.Errorf("WellFormedKey(%q)", s)
		}
	}
}

func TestTimesInJSON(t *testing.T) {
	t.Parallel()
	at := TimeOf(time.Date(2026, 12, 1, 9, 0, 0, 7_999_999, time.FixedZone("", 3600)))
	b, err := json.Marshal(map[string]Time{"a": at, "b": 0})
	if err != nil || string(b) != `{"a":"2026-12-01T08:00:00.007Z","b":null}` {
		t.Errorf("json = %s, %v", b, err)
	}
	var back map[string]Time
	if err := json.Unmarshal(b, &back); err != nil || back["a"] != at || back["b"] != 0 {
		t.Errorf("back = %v, %v", back, err)
	}
	for _, bad := range []string{`5`, `"yesterday"`, `""`, `{}`, `"`} {
		if err := json.Unmarshal([]byte(bad), new(Time)); err == nil {
			t.Errorf("%s passes for a time", bad)
		}
	}
}

func TestEndpointsGetWhatTheyAskFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		events  []string
		devices []DeviceID
		kind    EventType
		device  DeviceID
		want    bool
	}{
		{[]string{"*"}, nil, MessageReceived, "dev_1", true},
		{[]string{"*"}, nil, WebhookDisabled, "", false},
		{[]string{"webhook.disabled"}, nil, WebhookDisabled, "", true},
		{[]string{"message.*"}, nil, MessageSent, "dev_1", true},
		{[]string{"message.*"}, nil, DeviceLinked, "dev_1", false},
		{[]string{"device.linked", "message.read"}, nil, MessageRead, "dev_1", true},
		{[]string{"message.rea"}, nil, MessageRead, "dev_1", false},
		{[]string{"*"}, []DeviceID{"dev_2"}, MessageRead, "dev_1", false},
		{[]string{"*"}, []DeviceID{"dev_2", "dev_1"}, MessageRead, "dev_1", true},
		{nil, nil, MessageRead, "dev_1", false},
	} {
		if got := (Endpoint{Events: tt.events, DeviceIDs: tt.devices}).Wants(tt.kind, tt.device); got != tt.want {
			t.Errorf("endpoint %v %v wants %s of %s: %v, want %v", tt.events, tt.devices, tt.kind, tt.device, got,
				tt.want)
		}
	}
	for pattern, want := range map[string]bool{
		"*": true, "message.*": true, "message.read": true, "message.": false,
		"mess*": false, "": false, "**": false, "group.*": true, "presence.*": false, ".*": false,
	} {
		if got := ValidEventPattern(pattern); got != want {
			t.Errorf("ValidEventPattern(%q) = %v, want %v", pattern, got, want)
		}
	}
}

func TestEnvelopeIsJSONWhateverIsInIt(t *testing.T) {
	t.Parallel()
	m := Message{
		ID: NewMessageID(), WorkspaceID: "ws_1", DeviceID: "dev_1", Content: Text("<&>\u2028\"\\\x01👋"),
		Metadata: map[string]string{}, FromLID: "123",
		From: "",
	}
	for _, kind := range []EventType{MessageReceived, MessageSent} {
		e, err := m.Event(kind)
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			EventID, Type, Timestamp, DeviceID, WorkspaceID string
			Sequence                                        int64
			Message                                         map[string]any
		}
		if err := json.Unmarshal(e.Envelope(7, 1), &back); err != nil {
			t.Fatal(err)
		}
		if back.EventID != string(e.ID) || back.Type != string(kind) || back.Sequence != 7 ||
			back.Message["body"] != m.Content.Text ||
			back.Timestamp != "1970-01-01T00:00:00.001Z" {
			t.Errorf("envelope = %s", e.Envelope(7, 1))
		}
		if _, has := back.Message["from"]; kind == MessageReceived && (has || back.Message["fromLid"] != "lid:123") {
			t.Errorf("a sender whose number is hidden: %v", back.Message)
		}
	}
}

func TestPlansAreTheInterfaces(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Plan{
		"free": {Devices: 1, Messages: 500}, "starter": {Devices: 1, Messages: 3000, API: true}, "growth": {Devices: 5, Messages: 30_000, API: true},
		"pro": {Devices: 15, Messages: 300_000, API: true}, "enterprise": {Devices: 50, Messages: 1_000_000, API: true},
	} {
		got, ok := PlanByName(name)
		if !ok || got.Devices != want.Devices || got.Messages != want.Messages || got.API != want.API {
			t.Errorf("plan %s = %+v", name, got)
		}
	}
	if _, ok := PlanByName("gold"); ok {
		t.Error("there is a plan gold")
	}
}

// TestLimitsAreDocumented compares docs/limits.md with the table of plans.
func TestLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]func(Plan) int{
		"linked devices":                     func(p Plan) int { return p.Devices },
		"devices in total, linked or not":    func(p Plan) int { return p.Caps.Devices },
		"messages per month":                 func(p Plan) int { return p.Messages },
		"API keys that work":                 func(p Plan) int { return p.Caps.Keys },
		"members":                            func(p Plan) int { return p.Caps.Members },
		"open invitations":                   func(p Plan) int { return p.Caps.Invitations },
		"webhook endpoints":                  func(p Plan) int { return p.Endpoints },
		"first delivery attempts per minute": func(p Plan) int { return p.FirstAttempts },
		"API requests per minute, per key and for the workspace":          func(p Plan) int { return p.RequestsPerMinute },
		"dashboard requests per minute, per person and for the workspace": Plan.PagesPerMinute,
	} {
		row := "| " + name + " |"
		for _, plan := range PlanNames() {
			p, _ := PlanByName(plan)
			row += " " + cmp.Or(grouped(of(p)), "–") + " |"
		}
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/limits.md lacks %q", row)
		}
	}
}

// grouped is a number with commas; "" for 0.
func grouped(n int) string {
	text := strings.TrimPrefix(strconv.Itoa(n), "0")
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func TestSlowdownIsAShareInJSON(t *testing.T) {
	t.Parallel()
	for slowed, want := range map[Slowdown]string{0: "100", 1: "50", 2: "25", 3: "12", MostSlowed: "6"} {
		text, err := json.Marshal(slowed)
		if err != nil || string(text) != want {
			t.Errorf("%d halvings are %s (%v), want %s", slowed, text, err, want)
		}
		var back Slowdown
		if err := json.Unmarshal(text, &back); err != nil || back != slowed {
			t.Errorf("%s are %d halvings (%v), want %d", text, back, err, slowed)
		}
	}
	for _, wrong := range []string{"0", "101", `"50"`} {
		var s Slowdown
		if err := json.Unmarshal([]byte(wrong), &s); err == nil {
			t.Errorf("%s is %d halvings", wrong, s)
		}
	}
}
