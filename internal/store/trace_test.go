package store

import (
	"testing"

	"postern/internal/postern"
)

const someTrace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

// A message is sent, and each of its deliveries is made, in the trace in which it was accepted or received.
func TestTraceSurvivesTheQueues(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		e := newEndpoint(t, db, d.WorkspaceID, "*")
		if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
			t.Fatal(err)
		}
		o, in := queued(d), inboundOf(d, postern.NewNetworkID(), "lid:1", "hello")
		o.Message.Trace, in.Message.Trace = someTrace, someTrace
		if err := db.Messages.Queue(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		waiting, err := db.Outbox.Next(t.Context(), d.ID, nil, 10)
		if err != nil || waiting[postern.NormalLane][0].Trace != someTrace {
			t.Errorf("the message that is sent: %+v, %v", waiting, err)
		}
		if err := db.Outbox.Finish(t.Context(), FinishOutbound{
			MessageID: o.Message.ID, Status: postern.Sent, SentAt: testNow, At: testNow,
		}); err != nil {
			t.Fatal(err)
		}
		if err := db.Messages.RecordInbound(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		for name, list := range map[string]func() ([]DueDelivery, error){
			"first": func() ([]DueDelivery, error) {
				return db.Deliveries.First(t.Context(), e.ID, Place{}, testNow, 10)
			},
			"due": func() ([]DueDelivery, error) { return db.Deliveries.Due(t.Context(), e.ID, testNow, true, 10) },
		} {
			due, err := list()
			if err != nil || len(due) < 2 {
				t.Fatalf("%s: %d deliveries, %v", name, len(due), err)
			}
			for _, one := range due {
				if one.Trace != someTrace {
					t.Errorf("%s: the delivery has the trace %q", name, one.Trace)
				}
			}
		}
	})
}
