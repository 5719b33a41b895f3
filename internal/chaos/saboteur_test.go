package chaos_test

import (
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"postern/internal/chaos"
	"postern/internal/failpoint"
)

// saboteur is a mistake that the judge must notice, and the rules that it must report.
// Some mistakes have an effect only if the gateway is killed.
type saboteur struct {
	mistake failpoint.Mistake
	rules   []chaos.Rule // in order; none: the judge must find nothing
	kills   int
}

// changes reports whether groups and settings are changed: not if the mistake is about something else, so that its rule
// is named and no other.
func (s saboteur) changes() bool {
	switch s.mistake {
	case "", failpoint.ForgetSenderKey, failpoint.InventChange, failpoint.LoseChange, failpoint.ForgetSetting:
		return true
	default:
		return false
	}
}

func named(rules ...chaos.Rule) []chaos.Rule { return rules }

// saboteurs are tried by every run of the tests: one of each part of the gateway.
var saboteurs = []saboteur{
	{"", nil, 2}, // makes no mistake
	{failpoint.AnswerEarly, named(chaos.AcceptedLost), 3},
	{failpoint.AcknowledgeEarly, named(chaos.AcknowledgedLost), 3},
	{failpoint.NeverFinish, named(chaos.Unfinished), 0},
	{failpoint.SendUnderTwoIDs, named(chaos.OtherNetworkID, chaos.SecondNetworkID), 0},
	{failpoint.KeepTwice, named(chaos.KeptTwice), 0},
	{failpoint.PretendDelivered, named(chaos.Undelivered), 0},
	{failpoint.ForgetEvent, named(chaos.NoEvent, chaos.NotInLog, chaos.SequenceHole), 0},
	{failpoint.RefundSent, named(chaos.WrongEnd, chaos.RefundedSent), 0},
	{failpoint.ForgetIdempotency, named(chaos.TwoEffects), 0},
	{failpoint.LoseAction, named(chaos.ActionLost), 0},
	{failpoint.LoseFile, named(chaos.FileLost, chaos.FileMissing), 0},
	{failpoint.ForgetSenderKey, named(chaos.KeyLost), 3},
}

// furtherSaboteurs are tried with -everything. The last ones repeat mistakes, with and without
// kills.
var furtherSaboteurs = []saboteur{
	{failpoint.NeverTake, named(chaos.NotTaken), 0},
	{failpoint.TellNever, named(chaos.NoEvent), 0},
	{failpoint.KeepOtherText, named(chaos.ChangedInbound), 0},
	{failpoint.SpendTwice, named(chaos.QuotaOff), 0},
	{failpoint.SendOtherFile, named(chaos.FileChanged), 0},
	{failpoint.LogText, named(chaos.Leaked), 0},
	{failpoint.SendNewestFirst, named(chaos.Disordered), 0},
	{failpoint.RefuseGood, named(chaos.WrongAnswer), 0},
	{failpoint.FailGood, named(chaos.WrongEnd), 0},
	{failpoint.PretendSent, named(chaos.SentUnread), 0},
	{failpoint.PretendRead, named(chaos.Unearned), 0},
	{failpoint.SendUnderOtherID, named(chaos.SentUnread, chaos.OtherNetworkID), 0},
	{failpoint.SendOtherText, named(chaos.SentUnread, chaos.Unasked), 0},
	{failpoint.Invent, named(chaos.Invented), 0},
	{failpoint.TellTwice, named(chaos.TwoEvents), 0},
	{failpoint.TellOtherText, named(chaos.ChangedInbound), 0},
	{failpoint.GiveUpEarly, named(chaos.Undelivered), 0},
	{failpoint.QueueNever, named(chaos.NoDelivery), 0},
	{failpoint.PostOtherBytes, named(chaos.BadPost, chaos.ChangedBytes), 0},
	{failpoint.SignWrong, named(chaos.BadPost), 0},
	{failpoint.DateBack, named(chaos.BadEvent), 0},
	{failpoint.SkipSequence, named(chaos.SequenceHole), 0},
	{failpoint.RefundNever, named(chaos.NotRefunded), 0},
	{failpoint.DropReceipts, named(chaos.LostReceipt), 0},
	{failpoint.CancelNever, named(chaos.CanceledSent), 0},
	{failpoint.SendEarly, named(chaos.SentEarly), 0},
	{failpoint.KeepOtherFile, named(chaos.FileLost), 0},
	{failpoint.ActTwice, named(chaos.ActionTwice), 0},
	{failpoint.ForgetAction, named(chaos.ActionForgotten), 0},
	{failpoint.SpendOnAction, named(chaos.QuotaOff), 0},
	{failpoint.KeepOrphan, named(chaos.FileOrphan), 0},
	{failpoint.ForgetBytes, named(chaos.BytesOff), 0},
	{failpoint.InventChange, named(chaos.ChangeInvented), 0},
	{failpoint.LoseChange, named(chaos.ChangeLost, chaos.GroupOff), 0},
	{failpoint.ForgetSetting, named(chaos.SettingOff), 0},
	{failpoint.ForgetSenderKey, nil, 0},
	{failpoint.AnswerEarly, nil, 0},
	{failpoint.AcknowledgeEarly, nil, 0},
	{failpoint.RefundNever, named(chaos.NotRefunded), 3},
}

// TestEverySaboteurIsNamed proves that the judge can fail: each mistake that a running
// gateway makes now and then is reported as its rule, and as no other.
func TestEverySaboteurIsNamed(t *testing.T) {
	bin, err := rigged()
	if err != nil {
		t.Fatal(err)
	}
	list := saboteurs
	if *everything {
		list = append(slices.Clone(list), furtherSaboteurs...)
	}
	for _, s := range list {
		t.Run(string(s.mistake), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{
				Bin: bin, Devices: 3, Callers: 3, Room: 10 + 20*s.kills, Seed: 1, Mistake: s.mistake,
				Calm:    s.mistake != failpoint.PretendDelivered && s.mistake != failpoint.GiveUpEarly,
				Once:    s.mistake == failpoint.AnswerEarly,
				Changes: s.changes(),
				Sweep:   s.mistake == "" || s.mistake == failpoint.KeepOrphan || s.mistake == failpoint.LoseFile,
			})
			w.run(s.kills)
			e := w.evidence()
			found := map[chaos.Rule]int{}
			for _, v := range chaos.Judge(e) {
				found[v.Rule]++
			}
			t.Log(found, w.summary(e))
			if s.mistake == failpoint.NeverTake { // everything behind the refused message waits, and so do files
				delete(found, chaos.Unfinished)
				delete(found, chaos.LostReceipt)
				delete(found, chaos.FileLost)
			}
			if s.mistake == failpoint.SendNewestFirst { // an older edit that comes later may have no effect
				delete(found, chaos.NoEvent)
				delete(found, chaos.ActionForgotten)
			}
			if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, slices.Sorted(slices.Values(s.rules))) {
				t.Errorf("found %v, want %v", got, s.rules)
			}
		})
	}
}

// run puts messages through a gateway, enough that it has made its mistake, and kills it
// in between. A gateway that never takes some messages gets no further than the first of
// them.
func (w *world) run(kills int) {
	w.driver.start()
	for n := range kills + 1 {
		part := float64(n+1) / float64(kills+1)
		w.await("messages", func() bool { return w.loaded(part) })
		if n < kills {
			w.kill()
			w.boot()
		}
	}
	w.settle()
}

// loaded reports whether a part of the load of a run has passed. The load contains several
// of everything that some mistake needs: a failpoint slips at the third and then at each
// twentieth time.
func (w *world) loaded(part float64) bool {
	if w.opts.Mistake == failpoint.NeverTake {
		return w.stuck()
	}
	d := w.driver
	had := func(n *atomic.Int64, enough float64) bool { return float64(n.Load()) >= part*enough }
	if w.opts.Changes && !had(&d.changes, 30) {
		return false
	}
	return had(&d.sent, 40) && had(&d.received, 40) && had(&d.failed, 1) && // to nobody: its unit is given back
		had(&d.discarded, 1) && (w.opts.Once || had(&d.repeats, 3)) && (w.opts.Calm || had(&w.receiver.refused, 3))
}
