package chaos_test

import (
	"testing"
	"time"

	"postern/internal/chaos"
	"postern/internal/failpoint"
)

// saboteurs are the mistakes that the judge must notice, and the name it must
// give each. Some show only when the gateway is killed.
var saboteurs = []struct {
	mistake failpoint.Mistake
	rule    chaos.Rule
	kills   int
}{
	{"", "", 2}, // makes no mistake, and is acquitted
	{failpoint.AnswerEarly, chaos.AcceptedLost, 2},
	{failpoint.RefuseGood, chaos.WrongAnswer, 0},
	{failpoint.NeverFinish, chaos.Unfinished, 0},
	{failpoint.PretendSent, chaos.SentUnread, 0},
	{failpoint.SendUnderTwoIDs, chaos.SecondNetworkID, 0},
	{failpoint.SendUnderOtherID, chaos.OtherNetworkID, 0},
	{failpoint.SendOtherText, chaos.Unasked, 0},
	{failpoint.NeverTake, chaos.NotTaken, 0},
	{failpoint.KeepTwice, chaos.KeptTwice, 0},
	{failpoint.TellTwice, chaos.TwoEvents, 0},
	{failpoint.TellNever, chaos.NoEvent, 0},
	{failpoint.KeepOtherText, chaos.ChangedInbound, 0},
	{failpoint.PretendDelivered, chaos.Undelivered, 0},
	{failpoint.QueueNever, chaos.NoDelivery, 0},
	{failpoint.PostOtherBytes, chaos.ChangedBytes, 0},
	{failpoint.SignWrong, chaos.BadPost, 0},
	{failpoint.SkipSequence, chaos.SequenceHole, 0},
	{failpoint.SpendTwice, chaos.QuotaOff, 0},
	{failpoint.RefundNever, chaos.NotRefunded, 0},
	{failpoint.RefundSent, chaos.RefundedSent, 0},
	{failpoint.ForgetIdempotency, chaos.TwoEffects, 0},
	{failpoint.AcknowledgeEarly, chaos.AcknowledgedLost, 2},
	{failpoint.LogText, chaos.Leaked, 0},
}

// TestEverySaboteurIsNamed proves that the judge can fail: each mistake, made
// now and then by a running gateway, is found under its name.
func TestEverySaboteurIsNamed(t *testing.T) {
	bin, err := rigged()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range saboteurs {
		t.Run(string(s.mistake), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{
				Bin: bin, Devices: 3, Callers: 3, Room: 20, Seed: 1, Settle: 3 * time.Second,
				Calm: s.mistake != failpoint.PretendDelivered, Env: []string{"POSTERN_SABOTAGE=" + string(s.mistake)},
			})
			w.driver.start()
			<-time.After(time.Second)
			for range s.kills {
				w.kill()
				w.boot()
				<-time.After(300 * time.Millisecond)
			}
			w.settle()
			found := map[chaos.Rule]int{}
			for _, v := range chaos.Judge(w.evidence()) {
				found[v.Rule]++
			}
			t.Log(found)
			if s.rule == "" && len(found) > 0 {
				t.Errorf("an innocent was found guilty of %v", found)
			}
			if s.rule != "" && found[s.rule] == 0 {
				t.Errorf("%s was not noticed", s.rule)
			}
		})
	}
}
