package gateway

import (
	"testing"
	"time"

	"postern/internal/postern"
)

// A message that may have arrived can be deleted, unlike one that was never sent.
func TestWhatMayHaveArrivedCanBeDeleted(t *testing.T) {
	for code, want := range map[postern.FailureCode]bool{postern.Unconfirmed: true, postern.RecipientNotFound: false} {
		m := postern.Message{
			Direction: postern.Outbound, Status: postern.Failed, Error: &postern.Failure{Code: code},
			Content: postern.Text("x"),
		}
		if err := own(m); (err == nil) != want {
			t.Errorf("a message that ended with %s: %v", code, err)
		}
	}
	unread := postern.Message{Direction: postern.Inbound, Status: postern.Received, Error: &postern.Failure{}}
	if alive(unread) == nil {
		t.Error("a message that could not be read takes actions")
	}
}

// An action outlives the message that it waits for, and an edit ends when apps no longer accept it.
func TestActionsExpire(t *testing.T) {
	now := postern.TimeOf(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	week, sent := now.Add(7*day), now.Add(-10*time.Minute)
	for _, tt := range []struct {
		name string
		m    postern.Message
		kind postern.Kind
		want postern.Time
	}{
		{"deletion of a message that waits", postern.Message{Status: postern.Queued, ExpiresAt: week}, postern.KindRevoke, week.Add(day)},
		{"edit of a message that waits", postern.Message{Status: postern.Sending, ExpiresAt: week}, postern.KindEdit, week.Add(day)},
		{"edit of a message that was sent", postern.Message{Status: postern.Sent, SentAt: sent}, postern.KindEdit, now.Add(10 * time.Minute)},
		{"deletion of a message that was sent", postern.Message{Status: postern.Read, SentAt: sent}, postern.KindRevoke, now.Add(day)},
		{"reaction to a received message", postern.Message{Status: postern.Received, SentAt: sent}, postern.KindReaction, now.Add(day)},
	} {
		if got := actionExpiry(tt.m, tt.kind, now); got != tt.want {
			t.Errorf("the %s expires at %s, want %s", tt.name, got, tt.want)
		}
	}
}
