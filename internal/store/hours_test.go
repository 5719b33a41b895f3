package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/postern"
)

// countedSpan counts the messages of an hour or a minute one by one.
func countedSpan(t *testing.T, db *Store, ws postern.WorkspaceID, from, length postern.Time) postern.MessageSpan {
	t.Helper()
	of := func(what string) int64 {
		return int64(count(t, db, `SELECT count(*) FROM message WHERE workspace_id = $1 AND created_at >= $2
			AND created_at < $3 AND `+what, ws, from, from+length))
	}
	const api = `direction = 'outbound' AND source = 'api'`
	return postern.MessageSpan{
		Start: from, Accepted: of(api), Sent: of(api + ` AND status IN ('sent', 'delivered', 'read')`),
		Delivered: of(api + ` AND status IN ('delivered', 'read')`),
		Failed:    of(api + ` AND status IN ('failed', 'expired')`), Received: of(`direction = 'inbound'`),
	}
}

// life plays what happens to the i-th message of a device, some of it twice.
func life(t *testing.T, db *Store, d postern.Device, i int) error {
	ctx, m, in := t.Context(), outbound(d), inboundOf(d, fmt.Sprint("in", i), "lid:1", "hi")
	m.CreatedAt = testNow.Add(time.Duration(i) * 7 * time.Minute)
	m.ExpiresAt, in.Message.CreatedAt = m.CreatedAt.Add(time.Minute), m.CreatedAt
	if i%4 == 0 {
		in.Message.Direction, in.Message.Source, in.Message.Status, in.Type = postern.Outbound, "phone", postern.Sent,
			postern.MessageEcho
	}
	err := errors.Join(db.Messages.RecordInbound(ctx, in), db.Messages.RecordInbound(ctx, in),
		db.Messages.Queue(ctx, QueueMessage{Message: m, Month: MonthOf(m.CreatedAt)}))
	finish := func(status postern.MessageStatus, code postern.FailureCode, refund bool) {
		o := FinishOutbound{
			MessageID: m.ID, Status: status, Refund: refund, At: m.CreatedAt,
			Failure: postern.Failure{Code: code},
		}
		err = errors.Join(err, db.Outbox.Finish(ctx, o), db.Outbox.Finish(ctx, o))
	}
	receipt := func(status postern.MessageStatus) {
		o := Receipt{
			DeviceID: d.ID, NetworkID: m.NetworkID, Chats: []string{m.ChatID}, Status: status,
			At: m.CreatedAt, Now: m.CreatedAt,
		}
		err = errors.Join(err, db.Messages.RecordReceipts(ctx, []Receipt{o, o}))
	}
	switch i % 7 {
	case 0: // it waits
	case 1:
		finish(postern.Sent, "", false)
		receipt(postern.Delivered)
		receipt(postern.Read)
	case 2:
		finish(postern.Failed, "rejected", true)
		receipt(postern.Read) // of a message that did not leave
	case 3:
		finish(postern.Failed, postern.Unconfirmed, false)
		receipt(postern.Delivered) // it has arrived after all
	case 4:
		receipt(postern.Read) // before the answer
		finish(postern.Sent, "", false)
	case 5:
		finish(postern.Expired, "", true)
	case 6:
		finish(postern.Sent, "", false)
		receipt(postern.Sent)
	}
	return err
}

// The hourly counts match the rows when messages of several workspaces arrive, leave,
// repeat and fail concurrently, and after a refusal and an unlink.
func TestMessageHoursAreWhatTheRowsHave(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		devices := []postern.Device{
			newDevice(t, db, newWorkspace(t, db), postern.Connected),
			newDevice(t, db, newWorkspace(t, db), postern.Connected),
		}
		refused := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		limitMessages(t, db, refused.WorkspaceID, 0)
		var all sync.WaitGroup
		for i := range 84 {
			all.Go(func() {
				if err := life(t, db, devices[i%2], i/2); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				full := QueueMessage{Message: outbound(refused), Month: MonthOf(testNow)}
				if err := db.Messages.Queue(t.Context(), full); postern.ReasonOf(err) != postern.QuotaExhausted {
					t.Error(err)
				}
				if i%10 == 0 {
					_ = db.db.Do(t.Context(), opFunc(func(*tx) error { panic("the group is written one by one") }))
				}
			})
		}
		all.Wait()
		linkTo(t, db, devices[1], "+15550009999")
		if _, err := db.Outbox.Expire(t.Context(), testNow.Add(2*time.Hour), 3); err != nil {
			t.Fatal(err)
		}
		for _, d := range devices {
			got, err := db.Hours.MessageSpans(t.Context(), d.WorkspaceID, 0, time.Hour)
			if err != nil || len(got) < 5 {
				t.Fatalf("%+v (%v), want an hour of each", got, err)
			}
			for _, s := range got {
				if want := countedSpan(t, db, d.WorkspaceID, s.Start, hourMillis); s != want {
					t.Errorf("counted %+v, the rows have %+v", s, want)
				}
			}
			minutes, err := db.Hours.MessageSpans(t.Context(), d.WorkspaceID, 0, time.Minute)
			if err != nil || len(minutes) < 40 {
				t.Fatalf("%+v (%v), want a minute of each", minutes, err)
			}
			for _, s := range minutes {
				if want := countedSpan(t, db, d.WorkspaceID, s.Start, minuteMillis); s != want {
					t.Errorf("counted %+v in a minute, the rows have %+v", s, want)
				}
			}
			alone, err := db.Hours.DeviceSpans(t.Context(), d.WorkspaceID, d.ID, 0, time.Minute)
			if err != nil || !slices.Equal(alone, minutes) {
				t.Errorf("the only device has %+v (%v), its workspace %+v", alone, err, minutes)
			}
		}
		other := devices[0]
		none, err := db.Hours.DeviceSpans(t.Context(), devices[1].WorkspaceID, other.ID, 0, time.Minute)
		if err != nil || len(none) > 0 {
			t.Errorf("the device of another workspace has %+v (%v)", none, err)
		}
	})
}

func TestMessageHoursAreSummedAndRemoved(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		const dayMillis = 24 * hourMillis
		midnight := testNow - testNow%dayMillis
		for i, at := range []postern.Time{midnight - 1, midnight, midnight + 5*hourMillis, midnight + 5*hourMillis} {
			o := inboundOf(d, fmt.Sprint(i), "lid:1", "hi")
			o.Message.CreatedAt = at
			if err := db.Messages.RecordInbound(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		received := func(since postern.Time, span time.Duration) (list []int64) {
			spans, err := db.Hours.MessageSpans(t.Context(), d.WorkspaceID, since, span)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range spans {
				list = append(list, s.Received)
			}
			return list
		}
		sameText(t, "days", []string{fmt.Sprint(received(0, 24*time.Hour))}, "[1 3]")
		sameText(t, "hours of a day", []string{fmt.Sprint(received(midnight, time.Hour))}, "[1 2]")
		if more, err := db.Hours.RemoveMessageHours(t.Context(), midnight); more || err != nil {
			t.Error(more, err)
		}
		if more, err := db.Hours.RemoveMessageMinutes(t.Context(), midnight); more || err != nil {
			t.Error(more, err)
		}
		if n := count(t, db, `SELECT count(*) FROM message_minute`); n != 2 {
			t.Errorf("%d minutes are left, want two", n)
		}
		sameText(t, "days that are left", []string{fmt.Sprint(received(0, 24*time.Hour))}, "[3]")
		if spans, err := db.Hours.MessageSpans(t.Context(), newWorkspace(t, db), 0, time.Hour); len(spans) != 0 ||
			err != nil {
			t.Errorf("another workspace sees %+v (%v)", spans, err)
		}
	})
}

// A database of the previous release has messages and no hours.
func TestMessageHoursOfWhatWasThereBefore(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		for i := range 14 {
			if err := life(t, db, d, i); err != nil {
				t.Fatal(err)
			}
		}
		want, err := db.Hours.MessageSpans(t.Context(), d.WorkspaceID, 0, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		file, err := migrations.ReadFile("migrations/" + map[bool]string{
			true:  "postgres",
			false: "sqlite",
		}[on.postgres] +
			"/0015_message_hour.sql")
		if err != nil {
			t.Fatal(err)
		}
		_, fill, _ := strings.Cut(string(file), "INSERT")
		err = db.db.Do(t.Context(), opFunc(func(tx *tx) error {
			return errors.Join(tx.Exec(`DELETE FROM message_hour`),
				tx.Exec("INSERT"+strings.TrimSuffix(strings.TrimRight(fill, "\n"), ";")))
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Hours.MessageSpans(t.Context(), d.WorkspaceID, 0, time.Hour); err != nil ||
			fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("filled in %+v (%v), counted %+v", got, err, want)
		}
	})
}
