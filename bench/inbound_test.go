package bench

import (
	"fmt"
	"testing"
	"time"
)

const (
	pacedTexts = 120 // in a sample
	pacedEach  = time.Second / 20
)

// inbound measures how long a text is under way at 20 texts per second: from the moment in which a
// contact writes it to the receipt of its webhook, on both engines. Bare clients only report it.
func inbound(t *testing.T) (list []figure) {
	for _, e := range engines(t) {
		t.Run(e.name, func(t *testing.T) {
			list = append(list, underWay(newApart(t, e, 1), e)...)
		})
	}
	return list
}

func underWay(a *apart, e engine) []figure {
	a.t.Helper()
	half := figure{
		name: "text received at 20/s to webhook, median" + e.on(), unit: "µs",
		extra: "goal 2,300; bare: to the event of whatsmeow",
	}
	most := figure{name: "text received at 20/s to webhook, p99" + e.on(), unit: "µs", extra: "goal 8,000"}
	for round := range rounds {
		ours, plain := a.toWebhook(), a.toBare(round*pacedTexts)
		half.ours, half.bare = append(half.ours, median(ours)), append(half.bare, median(plain))
		most.ours, most.bare = append(most.ours, p99(ours)), append(most.bare, p99(plain))
	}
	return []figure{half, most}
}

// pace lets a contact write at 20 texts per second, and returns when each was written, by its text.
func (a *apart) pace(number string) map[string]time.Time {
	a.t.Helper()
	begun := map[string]time.Time{}
	tick := time.NewTicker(pacedEach)
	defer tick.Stop()
	for n := range pacedTexts {
		<-tick.C
		begun[pacedText(n)] = time.Now()
		a.inbound(number, pacedText(n))
	}
	return begun
}

func pacedText(n int) string { return fmt.Sprint("Text ", n) }

// toWebhook returns how long the texts were under way to the webhook receiver, in microseconds.
func (a *apart) toWebhook() (waits []float64) {
	a.t.Helper()
	begun := a.pace(fmt.Sprintf(ourNumber, 0))
	for _, got := range a.await("message.received", pacedTexts) {
		waits = append(waits, float64(got.at.Sub(begun[got.Message.Body]).Microseconds()))
	}
	return waits
}

// toBare is like toWebhook, for a bare client that has received so many texts before.
func (a *apart) toBare(before int) (waits []float64) {
	a.t.Helper()
	for n := range pacedTexts {
		a.bare.order("await %d", before+n+1)
	}
	arrived := make(chan time.Time, pacedTexts)
	go func() {
		defer close(arrived)
		for range pacedTexts {
			if err := a.bare.done(); err != nil {
				a.t.Error(err)
				return
			}
			arrived <- time.Now()
		}
	}()
	begun := a.pace(fmt.Sprintf(bareNumber, 0))
	for n := range pacedTexts {
		at := <-arrived // closed after an error
		waits = append(waits, float64(at.Sub(begun[pacedText(n)]).Microseconds()))
	}
	return waits
}
