package alert

import (
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/store/alerts"
)

// TestCompare walks through the life of an alert: it is noted, told when it has lasted, told as over when it has ended,
// and never told if it ends before.
func TestCompare(t *testing.T) {
	t.Parallel()
	const start, after = postern.Time(1_000_000), 5 * time.Minute
	at := func(d time.Duration) postern.Time { return start.Add(d) }
	down := alerts.Alert{Kind: alerts.DeviceDown, Subject: "dev_1", Detail: "disconnected"}
	noted, reported := down, down
	noted.Since, reported.Since, reported.ToldAt = start, start, at(after)
	for name, tt := range map[string]struct {
		wrong, known             []alerts.Alert
		now                      postern.Time
		fresh, due, passed, over int
	}{
		"nothing":      {now: start},
		"begins":       {wrong: []alerts.Alert{down}, now: start, fresh: 1},
		"lasts":        {wrong: []alerts.Alert{down}, known: []alerts.Alert{noted}, now: at(after - time.Second)},
		"is told":      {wrong: []alerts.Alert{down}, known: []alerts.Alert{noted}, now: at(after), due: 1},
		"was told":     {wrong: []alerts.Alert{down}, known: []alerts.Alert{reported}, now: at(time.Hour)},
		"ends":         {known: []alerts.Alert{reported}, now: at(time.Hour), over: 1},
		"ends earlier": {known: []alerts.Alert{noted}, now: at(time.Minute), passed: 1},
		"another kind": {
			wrong: []alerts.Alert{{Kind: alerts.DeviceLimited, Subject: "dev_1"}}, known: []alerts.Alert{reported},
			now: at(time.Hour), fresh: 1, over: 1,
		},
	} {
		d := compare(tt.wrong, tt.known, tt.now, after)
		if len(d.fresh) != tt.fresh || len(d.due) != tt.due || len(d.passed) != tt.passed || len(d.over) != tt.over {
			t.Errorf("%s: %+v", name, d)
		}
		for _, a := range d.due {
			if a.Since != start {
				t.Errorf("%s: it began at %s", name, a.Since)
			}
		}
	}
}

func TestNewsIsReadable(t *testing.T) {
	t.Parallel()
	one := alerts.Alert{
		Kind: alerts.DeviceDown, Subject: "dev_1", Name: "Support\n", Workspace: "acme", WorkspaceID: "ws_1",
		Detail: "logged_out", Since: 1795251600000,
	}
	n := News{Began: []alerts.Alert{one}}
	const line = `Device "Support\n" (dev_1) is not connected: logged_out (workspace "acme" (ws_1), since 2026-11-21T09:00:00.000Z)`
	if got := n.Text(); got != line+"\n" {
		t.Errorf("%q\nwant %q", got, line)
	}
	if got := n.Title(); strings.Contains(got, "\n") || !strings.HasPrefix(got, "Device ") {
		t.Errorf("%q", got)
	}
	n.Ended = []alerts.Alert{one, one}
	if got := n.Title(); got != "1 problem began, 2 problems are over" {
		t.Errorf("%q", got)
	}
}
