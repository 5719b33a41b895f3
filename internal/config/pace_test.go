package config

import "testing"

func TestPace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"off": "off", "OFF": "off", "30/min": "30/min", "5 new chats/min": "5 new chats/min", "30/min,5 new chats/min": "30/min,5 new chats/min", " 5 new chats/min , 30/min ": "30/min,5 new chats/min",
	} {
		var s Server
		s.Sandbox = true
		if err := s.Pace.UnmarshalText([]byte(text)); err != nil || s.DefaultPace().String() != want {
			t.Errorf("%q = %s, %v, want %s", text, s.DefaultPace(), err, want)
		}
	}
	for _, text := range []string{
		"", "30", "30/h", "0/min", "-1/min", "1001/min", "30/min,30/min", "30/min,", "x/min",
		"30/min 5 new chats/min",
	} {
		var p Pace
		if err := p.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q = %s, want a refusal", text, p)
		}
	}
	for want, s := range map[string]Server{"30/min,5 new chats/min": {}, "off": {Sandbox: true}} {
		if got := s.DefaultPace().String(); got != want {
			t.Errorf("default = %s, want %s", got, want)
		}
	}
	if s := (Server{NetworkURL: "wss://x"}); s.DefaultPace() != (Pace{}) {
		t.Error("another network has a pace by default")
	}
}
