package session

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"postern/internal/network"
)

func TestWhatIsReadOfGroupsIsNotOlderThanTheirNotices(t *testing.T) {
	var n notices
	subject, stored := "old", []string{}
	notice := func() error { stored = append(stored, "notice"); return nil }
	reads := 0
	err := n.read(
		func() error {
			if reads++; reads == 1 { // the answer is on its way when the group changes
				return n.record(notice)
			}
			subject = "new"
			return nil
		},
		func() error { stored = append(stored, subject); return nil })
	if want := []string{"notice", "new"}; err != nil || !slices.Equal(stored, want) {
		t.Errorf("recorded are %q, error %v; want %q", stored, err, want)
	}
}

func TestNoticesWaitForWhatIsBeingRecorded(t *testing.T) {
	var n notices
	var stored []string
	done := make(chan error, 1)
	err := n.read(
		func() error { return nil },
		func() error {
			begun := make(chan struct{})
			go func() {
				close(begun)
				done <- n.record(func() error { stored = append(stored, "notice"); return nil })
			}()
			<-begun
			stored = append(stored, "read")
			return nil
		})
	if err := errors.Join(err, <-done); err != nil || !slices.Equal(stored, []string{"read", "notice"}) {
		t.Errorf("recorded are %q, error %v", stored, err)
	}
}

func TestGroupsThatAlwaysChangeAreNotRecorded(t *testing.T) {
	var n notices
	reads := 0
	err := n.read(
		func() error { reads++; return n.record(func() error { return nil }) },
		func() error { t.Error("an answer older than a notice is recorded"); return nil })
	if !errors.Is(err, errNoticed) || reads != readTries {
		t.Errorf("after %d reads, the error is %v", reads, err)
	}
	broken := errors.New("broken")
	if err := n.read(func() error { return broken }, nil); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

func TestGroupsAreReadAgainUntilTheyAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		l := &liveSession{ctx: ctx}
		tries := 0
		outcomes := []error{errNoticed, network.ErrBehind, errNoticed, nil}
		err := l.patiently(func() error {
			tries++
			return outcomes[tries-1]
		})
		if err != nil || tries != 4 {
			t.Errorf("after %d tries: %v", tries, err)
		}
		end()
		if err := l.patiently(func() error { return errNoticed }); !errors.Is(err, errNoticed) {
			t.Errorf("after the connection: %v", err)
		}
	})
}
