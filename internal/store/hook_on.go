//go:build failpoints

package store

import (
	"context"
	"errors"
	"time"

	"postern/internal/failpoint"
	"postern/internal/postern"
)

// early is how long a saboteur keeps back what it has answered for.
const early = 150 * time.Millisecond

// do hands an op to the writer, with fail points and saboteurs around it.
func (db *DB) do(ctx context.Context, o op) error {
	before, inside, after := places(o)
	if err := failed(before); err != nil {
		return err
	}
	o, err := db.sabotaged(o)
	if err != nil {
		return err
	}
	if answersEarly(o) {
		time.AfterFunc(early, func() { _ = db.writer.do(context.WithoutCancel(ctx), o) })
		return nil
	}
	if err := db.writer.do(ctx, &hooked{op: o, point: inside}); err != nil {
		return err
	}
	return failed(after)
}

// after is do for a caller that does not wait.
func (db *DB) after(o op, then func(error)) {
	before, inside, _ := places(o)
	err := failed(before)
	if err == nil {
		o, err = db.sabotaged(o)
	}
	if err != nil {
		then(err)
		return
	}
	db.writer.after(&hooked{op: o, point: inside}, then)
}

// places are the fail points before an op, in its transaction and after it.
func places(o op) (before, inside, after failpoint.Point) {
	switch o.(type) {
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

// hooked is an op with a fail point after its statements. It fails again when
// its group is written a second time.
type hooked struct {
	op
	point failpoint.Point
	err   error
}

func (h *hooked) apply(t *tx) error {
	if err := h.op.apply(t); err != nil {
		return err
	}
	if h.err == nil {
		h.err = failed(h.point)
	}
	return h.err
}

// bare is an op without what fail points wrap around it.
func bare(o op) op {
	if h, is := o.(*hooked); is {
		return h.op
	}
	return o
}

func answersEarly(o op) bool {
	switch o.(type) {
	case QueueMessage:
		return failpoint.Makes(failpoint.AnswerEarly)
	case RecordInbound:
		return failpoint.Makes(failpoint.AcknowledgeEarly)
	}
	return false
}

// sabotaged puts the run's mistake into an op.
func (db *DB) sabotaged(o op) (op, error) {
	switch o := o.(type) {
	case QueueMessage:
		return db.sabotagedAccept(o)
	case RecordInbound:
		return sabotagedInbound(o), nil
	case FinishOutbound:
		return sabotagedOutcome(o), nil
	case receipts:
		return sabotagedReceipts(o), nil
	case Attempt:
		return sabotagedAttempt(o), nil
	}
	return o, nil
}

func sabotagedAttempt(o Attempt) op {
	switch {
	case failpoint.Makes(failpoint.PretendDelivered) && o.Status == postern.DeliveryPending:
		o.Status = postern.DeliverySucceeded
	case failpoint.Makes(failpoint.GiveUpEarly) && o.Status == postern.DeliveryPending:
		o.Status = postern.DeliveryExhausted
	case o.Status == postern.DeliverySucceeded && failpoint.Slips(failpoint.ForgetEvent):
		return with(o, func(t *tx) error {
			return t.exec(`DELETE FROM event WHERE id = (SELECT event_id FROM delivery WHERE id = $1)`, o.DeliveryID)
		})
	}
	return o
}

// sabotagedReceipts are what is left of receipts.
func sabotagedReceipts(list receipts) (left receipts) {
	for _, o := range list {
		if failpoint.Slips(failpoint.DropReceipts) {
			continue
		}
		if failpoint.Slips(failpoint.PretendRead) {
			o.Status = postern.Read
		}
		left = append(left, o)
	}
	return left
}

func (db *DB) sabotagedAccept(o QueueMessage) (op, error) {
	if failpoint.Slips(failpoint.RefuseGood) {
		return o, postern.Invalid("/to", "no reason")
	}
	if failpoint.Slips(failpoint.LogText) {
		db.writer.log.Info("accepted", "what", o.Message.Content.Text)
	}
	if failpoint.Makes(failpoint.ForgetIdempotency) {
		o.Once = nil
	}
	if failpoint.Slips(failpoint.SpendTwice) {
		return with(o, func(t *tx) error { return spend(t, o.Message.WorkspaceID, o.Month, o.Quota) }), nil
	}
	return o, nil
}

func sabotagedInbound(o RecordInbound) op {
	if failpoint.Slips(failpoint.KeepOtherText) {
		o.Message.Content.Text += "!"
	}
	if failpoint.Slips(failpoint.TellOtherText) {
		return with(o, changeNewestEvent(o.Message.ID, o.Type, `replace(CAST(body AS TEXT), 'in-', 'IN-')`))
	}
	if failpoint.Slips(failpoint.Invent) {
		other := o
		other.Message.ID, other.Message.NetworkID = postern.NewMessageID(), postern.NewNetworkID()
		return with(o, other.apply)
	}
	if failpoint.Slips(failpoint.KeepTwice) {
		twin := o
		twin.Sender += "'"
		twin.Message.ID = postern.NewMessageID()
		return with(o, twin.apply)
	}
	return o
}

// changeNewestEvent rewrites the body of the event that was just recorded of a
// message.
func changeNewestEvent(m postern.MessageID, kind postern.EventType, body string) func(t *tx) error {
	return func(t *tx) error {
		return t.exec(`UPDATE event SET body = CAST(`+body+` AS BLOB) WHERE position = (SELECT max(position) FROM event) AND type = $1 AND instr(CAST(body AS TEXT), $2) > 0`, kind, m)
	}
}

func sabotagedOutcome(o FinishOutbound) op {
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
		return with(o, changeNewestEvent(o.MessageID, postern.MessageSent, `replace(CAST(body AS TEXT), '"timestamp":"20', '"timestamp":"19')`))
	case failpoint.Slips(failpoint.TellTwice):
		return with(o, func(t *tx) error {
			m, err := t.updateMessage(`UPDATE message SET status = status WHERE id = $1 RETURNING `+messageColumns, o.MessageID)
			return errors.Join(err, t.recordStatus(m, o.At))
		})
	case failpoint.Slips(failpoint.TellNever):
		return opFunc(func(t *tx) error {
			return t.exec(`UPDATE message SET status = 'sent', sent_at = $2 WHERE id = $1 AND status = 'sending'`, o.MessageID, o.SentAt)
		})
	case failpoint.Slips(failpoint.QueueNever):
		return with(o, func(t *tx) error { return t.exec(`DELETE FROM delivery WHERE n = (SELECT max(n) FROM delivery)`) })
	case failpoint.Slips(failpoint.SkipSequence):
		return with(o, func(t *tx) error {
			return t.exec(`UPDATE device SET sequence = sequence + 1 WHERE id = (SELECT device_id FROM message WHERE id = $1)`, o.MessageID)
		})
	}
	return o
}

// with does something more in the transaction of an op.
func with(o op, more func(t *tx) error) op {
	return opFunc(func(t *tx) error {
		if err := o.apply(t); err != nil {
			return err
		}
		return more(t)
	})
}
