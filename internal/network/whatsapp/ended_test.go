package whatsapp

import (
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/postern"

	waBinary "go.mau.fi/whatsmeow/binary"
)

func TestEndings(t *testing.T) {
	t.Parallel()
	now := time.Now()
	failure := func(attrs waBinary.Attrs) *waBinary.Node { return &waBinary.Node{Tag: "failure", Attrs: attrs} }
	stream := func(code, conflict string) *waBinary.Node {
		n := &waBinary.Node{Tag: "stream:error", Attrs: waBinary.Attrs{"code": code}}
		if conflict != "" {
			n.Content = []waBinary.Node{{Tag: "conflict", Attrs: waBinary.Attrs{"type": conflict}}}
		}
		return n
	}
	tests := []struct {
		in   *waBinary.Node
		want *network.Ended
	}{
		{failure(waBinary.Attrs{"reason": "401"}), &network.Ended{Status: postern.LoggedOut, Reason: "device-removed"}},
		{failure(waBinary.Attrs{"reason": "403"}), &network.Ended{Status: postern.Banned, Reason: "locked"}},
		{failure(waBinary.Attrs{"reason": "406"}), &network.Ended{Status: postern.Banned, Reason: "banned"}},
		{
			failure(waBinary.Attrs{"reason": "402", "code": "101", "expire": "60"}),
			&network.Ended{Status: postern.Restricted, Reason: "temporary-ban", Until: now.Add(time.Minute)},
		},
		{
			failure(waBinary.Attrs{"reason": "402", "code": "106"}),
			&network.Ended{Status: postern.Restricted, Reason: "temporary-ban"},
		},
		{failure(waBinary.Attrs{"reason": "405"}), disconnected("client-outdated")},
		{failure(waBinary.Attrs{"reason": "500"}), disconnected("vendor-unavailable")},
		{failure(waBinary.Attrs{"reason": "503"}), disconnected("vendor-unavailable")},
		{failure(waBinary.Attrs{"reason": "418"}), disconnected("refused")},
		{failure(waBinary.Attrs{"reason": "<b>"}), disconnected("refused")},
		{stream("401", "device_removed"), &network.Ended{Status: postern.LoggedOut, Reason: "device-removed"}},
		{stream("409", "replaced"), &network.Ended{Status: postern.Conflict, Reason: "replaced"}},
		{stream("", "replaced"), &network.Ended{Status: postern.Conflict, Reason: "replaced"}},
		{stream("503", ""), disconnected("vendor-unavailable")},
		{stream("515", ""), nil},
		{stream("516", ""), disconnected("stream-error")},
		{&waBinary.Node{Tag: "message"}, nil},
	}
	for _, tt := range tests {
		got := endedBy(tt.in, now)
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("endedBy(%v) = %+v, want %+v", tt.in, got, tt.want)
		}
	}
}
