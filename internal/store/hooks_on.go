//go:build failpoints

package store

import (
	"context"
	"errors"
	"time"

	"postern/internal/db"
	"postern/internal/failpoint"
	"postern/internal/postern"
)

// early is how long a saboteur delays a write that it has already answered: so long that a kill comes in between also
// when the machine is slow.
const early = 3 * time.Second

// write hands a hot write to the engine, with fail points and saboteurs around it.
func write[T db.Hot[T]](ctx context.Context, s *core, value T) error {
	before, inside, after := places(value)
	if err := failed(before); err != nil {
		return err
	}
	w, err := s.sabotaged(value)
	if err != nil {
		return err
	}
	if w == nil {
		w = db.Item(value)
	}
	if answersEarly(value) {
		time.AfterFunc(early, func() { _ = s.db.Do(context.WithoutCancel(ctx), w) })
		return nil
	}
	if err := s.db.Do(ctx, pointInside(w, inside)); err != nil {
		return err
	}
	return failed(after)
}

// startWrite is write for a caller that waits later.
func startWrite[T db.Hot[T]](s *core, value T) (wait func() error) {
	done := make(chan error, 1)
	writeThen(s, value, func(err error) { done <- err })
	return func() error {
		if err := <-done; err != nil {
			return err
		}
		_, _, after := places(value)
		return failed(after)
	}
}

// writeThen is write for a caller that does not wait.
func writeThen[T db.Hot[T]](s *core, value T, then func(error)) {
	before, inside, _ := places(value)
	err := failed(before)
	var w db.Write
	if err == nil {
		w, err = s.sabotaged(value)
	}
	if err != nil {
		then(err)
		return
	}
	if w == nil {
		w = db.Item(value)
	}
	s.db.After(pointInside(w, inside), then)
}

// pointInside puts a fail point after the statements of a write. It fails again when its
// group is written a second time. Where the run has nothing to do, the write is still
// grouped with its kind.
func pointInside(w db.Write, p failpoint.Point) db.Write {
	if !failpoint.Armed(p) {
		return w
	}
	var err error
	return db.Then(w, func(*db.Tx) error {
		if err == nil {
			err = failed(p)
		}
		return err
	})
}

// places returns the fail points before a write, in its transaction and after it.
func places(value any) (before, inside, after failpoint.Point) {
	switch value.(type) {
	case QueueMessage:
		return "", failpoint.AcceptBeforeCommit, failpoint.AcceptAfterCommit
	case *markSending:
		return failpoint.SendBeforeMark, "", failpoint.SendAfterMark
	case FinishOutbound:
		return failpoint.SendAnswered, failpoint.SendBeforeCommit, ""
	case RecordInbound:
		return failpoint.InboxDecrypted, failpoint.InboxInserted, failpoint.InboxBeforeAck
	case Attempt:
		return failpoint.HookAnswered, "", ""
	}
	return "", "", ""
}

func failed(p failpoint.Point) error {
	if err := failpoint.At(p); err != nil {
		return errors.Join(postern.Errorf(postern.Unavailable, "a fail point"), err)
	}
	return nil
}

func answersEarly(value any) bool {
	switch value.(type) {
	case QueueMessage:
		return failpoint.Makes(failpoint.AnswerEarly)
	case RecordInbound:
		return failpoint.Makes(failpoint.AcknowledgeEarly)
	}
	return false
}

// sabotaged returns the write of a value with the mistake of this run applied, or nil to
// write the value unchanged.
func (s *core) sabotaged(value any) (db.Write, error) {
	switch o := value.(type) {
	case QueueMessage:
		return s.sabotagedAccept(o)
	case RecordInbound:
		return sabotagedInbound(o), nil
	case FinishOutbound:
		return sabotagedOutcome(o), nil
	case receipts:
		return sabotagedReceipts(o), nil
	case Attempt:
		return sabotagedAttempt(o), nil
	}
	return nil, nil
}

func sabotagedAttempt(o Attempt) db.Write {
	switch {
	case failpoint.Makes(failpoint.PretendDelivered) && o.Status == postern.DeliveryPending:
		o.Status = postern.DeliverySucceeded
	case failpoint.Makes(failpoint.GiveUpEarly) && o.Status == postern.DeliveryPending:
		o.Status = postern.DeliveryExhausted
	case o.Status == postern.DeliverySucceeded && failpoint.Slips(failpoint.ForgetEvent):
		return db.Then(db.Item(o), func(t *db.Tx) error {
			return t.Exec(`DELETE FROM event WHERE id = (SELECT event_id FROM delivery WHERE id = $1)`, o.DeliveryID)
		})
	}
	return db.Item(o)
}

// sabotagedReceipts returns the write of the receipts that the mistake does not drop.
func sabotagedReceipts(list receipts) db.Write {
	left := receipts{}
	for _, o := range list {
		if failpoint.Slips(failpoint.DropReceipts) {
			continue
		}
		if failpoint.Slips(failpoint.PretendRead) {
			o.Status = postern.Read
		}
		left = append(left, o)
	}
	return db.Item(left)
}

func (s *core) sabotagedAccept(o QueueMessage) (db.Write, error) {
	if failpoint.Slips(failpoint.RefuseGood) {
		return nil, postern.Invalid("/to", "no reason")
	}
	if failpoint.Slips(failpoint.LogText) {
		s.log.Info("accepted", "what", o.Message.Content.Text)
	}
	if failpoint.Makes(failpoint.ForgetIdempotency) {
		o.Once = nil
	}
	if failpoint.Slips(failpoint.SpendTwice) {
		return db.Then(db.Item(o), func(t *db.Tx) error {
			return spend(t,
				map[counter]int{{o.account(), o.Message.DeviceID}: 1})
		}), nil
	}
	return db.Item(o), nil
}

func sabotagedInbound(o RecordInbound) db.Write {
	if o.Message.About != "" { // what an action does to its message would break other promises too
		return db.Item(o)
	}
	if failpoint.Slips(failpoint.KeepOtherText) {
		o.Message.Content.Text += "!"
	}
	if failpoint.Slips(failpoint.TellOtherText) {
		return db.Then(db.Item(o), changeNewestEvent(o.Message.ID, o.Type, `replace(CAST(body AS TEXT), 'in-', 'IN-')`))
	}
	if o.Message.Content.Kind != postern.KindText {
		return db.Item(o) // a second file would have the same id, and nobody could vote in an invented poll
	}
	if failpoint.Slips(failpoint.Invent) {
		other := o
		other.Message.ID, other.Message.NetworkID = postern.NewMessageID(), postern.NewNetworkID()
		return db.Then(db.Item(o), func(t *db.Tx) error { return db.WriteNow(t, other) })
	}
	if failpoint.Slips(failpoint.KeepTwice) {
		twin := o
		twin.Sender += "'"
		twin.Message.ID = postern.NewMessageID()
		return db.Then(db.Item(o), func(t *db.Tx) error { return db.WriteNow(t, twin) })
	}
	return db.Item(o)
}

// changeNewestEvent returns a function that rewrites the body of a message's newest event.
func changeNewestEvent(m postern.MessageID, kind postern.EventType, body string) func(t *db.Tx) error {
	return func(t *db.Tx) error {
		return t.Exec(`UPDATE event SET body = CAST(`+body+` AS BLOB) WHERE position = (SELECT max(position) FROM event)
			AND type = $1 AND instr(CAST(body AS TEXT), $2) > 0`, kind, m)
	}
}

func sabotagedOutcome(o FinishOutbound) db.Write {
	switch {
	case failpoint.Makes(failpoint.RefundNever):
		o.Refund = false
	case o.Status != postern.Sent:
	case failpoint.Slips(failpoint.RefundSent):
		o.Status, o.Refund, o.SentAt = postern.Failed, true, 0
		o.Failure = postern.Failure{Code: postern.NetworkRejected}
	case failpoint.Slips(failpoint.FailGood):
		o.Status, o.SentAt, o.Failure = postern.Failed, 0, postern.Failure{Code: postern.EncryptionFailed}
	case failpoint.Slips(failpoint.DateBack):
		return db.Then(db.Item(o), changeNewestEvent(o.MessageID, postern.MessageSent,
			`replace(CAST(body AS TEXT), '"timestamp":"20', '"timestamp":"19')`))
	case failpoint.Slips(failpoint.TellTwice):
		return db.Then(db.Item(o), func(t *db.Tx) error {
			m, err := scanMessage(t.One(`SELECT `+messageColumns+` FROM message WHERE id = $1`, o.MessageID))
			if err != nil || m.About != "" {
				return err
			}
			e, err := statusEvent(m, o.At)
			return errors.Join(err, recordEvents(t, []eventAt{e}))
		})
	case failpoint.Slips(failpoint.TellNever):
		return db.Func(func(t *db.Tx) error {
			n, err := t.Changed(`UPDATE message SET status = 'sent', sent_at = $2
				WHERE id = $1 AND about = '' AND status = 'sending'`, o.MessageID, o.SentAt)
			if err == nil && n == 0 { // an action, whose message would not change
				err = db.WriteNow(t, o)
			}
			return err
		})
	case failpoint.Slips(failpoint.QueueNever):
		return db.Then(db.Item(o), func(t *db.Tx) error {
			return t.Exec(`DELETE FROM delivery
			WHERE n = (SELECT max(n) FROM delivery)`)
		})
	case failpoint.Slips(failpoint.SkipSequence):
		return db.Then(db.Item(o), func(t *db.Tx) error {
			return t.Exec(`UPDATE device SET sequence = sequence + 1 WHERE id = (SELECT device_id FROM message WHERE id = $1)`,
				o.MessageID)
		})
	}
	return db.Item(o)
}

func dueAt(now postern.Time) postern.Time {
	if failpoint.Makes(failpoint.SendEarly) {
		return now.Add(time.Minute)
	}
	return now
}

func pretendsToCancel() bool { return failpoint.Slips(failpoint.CancelNever) }

// accepted makes the mistakes about an action that was added, in its transaction.
func accepted(t *db.Tx, a postern.Message) error {
	switch {
	case failpoint.Slips(failpoint.LoseAction):
		return t.Exec(`DELETE FROM message WHERE id = $1`, a.ID)
	case failpoint.Slips(failpoint.SpendOnAction):
		return t.Exec(`UPDATE usage SET messages = messages + 1 WHERE workspace_id = $1`, a.WorkspaceID)
	case failpoint.Slips(failpoint.ActTwice):
		a.ID, a.NetworkID = postern.NewMessageID(), postern.NewNetworkID()
		err := t.Each(addMessages, [][]any{newMessage(a, postern.NormalLane, "", false)})
		return err
	}
	return nil
}

func forgetsActions() bool { return failpoint.Makes(failpoint.ForgetAction) }

//nolint:gochecknoglobals // a constant of the process
var queueOrder = map[bool]string{false: `n`, true: `n DESC`}[failpoint.Makes(failpoint.SendNewestFirst)]

// released returns how many bytes are taken off the count.
func released(size int64) int64 {
	if failpoint.Makes(failpoint.ForgetBytes) {
		return 0
	}
	return size
}

// holds keeps the contents whose hash is in the first half, or none.
func holds(hash string, held bool) bool {
	return !failpoint.Makes(failpoint.LoseFile) && (held || failpoint.Makes(failpoint.KeepOrphan) && hash < "8")
}
