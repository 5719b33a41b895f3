package chaos_test

import (
	"maps"
	"slices"
	"testing"

	"postern/internal/chaos"
	"postern/internal/failpoint"
)

// saboteur is a mistake that the judge must notice, and all that it must call
// it. Some mistakes show only when the gateway is killed.
type saboteur struct {
	mistake failpoint.Mistake
	rules   []chaos.Rule // in their order; none: it must be acquitted
	kills   int
}

func named(rules ...chaos.Rule) []chaos.Rule { return rules }

var saboteurs = []saboteur{
	{"", nil, 2}, // makes no mistake
	{failpoint.AnswerEarly, nil, 0},
	{failpoint.AnswerEarly, named(chaos.AcceptedLost), 3},
	{failpoint.AcknowledgeEarly, nil, 0},
	{failpoint.AcknowledgeEarly, named(chaos.AcknowledgedLost), 3},
	{failpoint.RefuseGood, named(chaos.WrongAnswer), 0},
	{failpoint.FailGood, named(chaos.WrongEnd), 0},
	{failpoint.NeverFinish, named(chaos.Unfinished), 0},
	{failpoint.PretendSent, named(chaos.SentUnread), 0},
	{failpoint.PretendRead, named(chaos.Unearned), 0},
	{failpoint.SendUnderTwoIDs, named(chaos.OtherNetworkID, chaos.SecondNetworkID), 0},
	{failpoint.SendUnderOtherID, named(chaos.SentUnread, chaos.OtherNetworkID), 0},
	{failpoint.SendOtherText, named(chaos.SentUnread, chaos.Unasked), 0},
	{failpoint.NeverTake, named(chaos.NotTaken), 0},
	{failpoint.KeepTwice, named(chaos.KeptTwice), 0},
	{failpoint.Invent, named(chaos.Invented), 0},
	{failpoint.TellTwice, named(chaos.TwoEvents), 0},
	{failpoint.TellNever, named(chaos.NoEvent), 0},
	{failpoint.KeepOtherText, named(chaos.ChangedInbound), 0},
	{failpoint.TellOtherText, named(chaos.ChangedInbound), 0},
	{failpoint.PretendDelivered, named(chaos.Undelivered), 0},
	{failpoint.GiveUpEarly, named(chaos.Undelivered), 0},
	{failpoint.QueueNever, named(chaos.NoDelivery), 0},
	{failpoint.ForgetEvent, named(chaos.NoEvent, chaos.NotInLog, chaos.SequenceHole), 0},
	{failpoint.PostOtherBytes, named(chaos.BadPost, chaos.ChangedBytes), 0},
	{failpoint.SignWrong, named(chaos.BadPost), 0},
	{failpoint.DateBack, named(chaos.BadEvent), 0},
	{failpoint.SkipSequence, named(chaos.SequenceHole), 0},
	{failpoint.SpendTwice, named(chaos.QuotaOff), 0},
	{failpoint.RefundNever, named(chaos.NotRefunded), 0},
	{failpoint.RefundNever, named(chaos.NotRefunded), 3},
	{failpoint.RefundSent, named(chaos.WrongEnd, chaos.RefundedSent), 0},
	{failpoint.ForgetIdempotency, named(chaos.TwoEffects), 0},
	{failpoint.DropReceipts, named(chaos.LostReceipt), 0},
	{failpoint.LogText, named(chaos.Leaked), 0},
}

// TestEverySaboteurIsNamed proves that the judge can fail: each mistake, made
// now and then by a running gateway, is found, under its name and no other.
func TestEverySaboteurIsNamed(t *testing.T) {
	bin, err := rigged()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range saboteurs {
		t.Run(string(s.mistake), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{
				Bin: bin, Devices: 3, Callers: 3, Room: 30, Seed: 1, Mistake: s.mistake,
				Calm: s.mistake != failpoint.PretendDelivered && s.mistake != failpoint.GiveUpEarly,
				Once: s.mistake == failpoint.AnswerEarly,
			})
			w.run(s.kills)
			found := map[chaos.Rule]int{}
			for _, v := range chaos.Judge(w.evidence()) {
				found[v.Rule]++
			}
			t.Log(found)
			if s.mistake == failpoint.NeverTake { // everything behind the refused message waits
				delete(found, chaos.Unfinished)
				delete(found, chaos.LostReceipt)
			}
			if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, slices.Sorted(slices.Values(s.rules))) {
				t.Errorf("found %v, want %v", got, s.rules)
			}
		})
	}
}

// run puts a hundred messages each way through a gateway, and kills it in between. A
// gateway that never takes some messages gets no further than the first of them.
func (w *world) run(kills int) {
	const enough = 100
	w.driver.start()
	for n := range kills + 1 {
		share := int64(enough * (n + 1) / (kills + 1))
		w.await("messages", func() bool {
			if w.opts.Mistake == failpoint.NeverTake {
				return w.stuck()
			}
			return w.driver.sent.Load() >= share && w.driver.received.Load() >= share
		})
		if n < kills {
			w.kill()
			w.boot()
		}
	}
	w.settle()
}
