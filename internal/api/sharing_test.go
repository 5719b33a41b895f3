package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"postern/internal/postern"
)

// at is a tenant whose requests go to one of the servers.
func (t *tenant) at(s *server) *tenant {
	one := *s
	one.handler = s.door
	return &tenant{server: &one, ws: t.ws, key: t.key}
}

// The same request sent to all servers at once takes effect once, and each of them gives the same answer.
func TestOneKeyAtAllServersMakesOneMessage(t *testing.T) {
	t.Parallel()
	s := newServers(t, fakeSandbox{})
	mine := s.tenant("enterprise")
	device := connected(mine)
	for round := range 20 {
		body := fmt.Sprintf(`{"deviceId":%q,"to":"+1555777%04d","body":"x"}`, device, round)
		answers := make([]*answerT, manyServers)
		var wg sync.WaitGroup
		for i, one := range s.all {
			wg.Go(func() {
				answers[i] = mine.at(one).do("POST", "/v1/messages", body, "Idempotency-Key", fmt.Sprint("k", round))
			})
		}
		wg.Wait()
		fresh := 0
		for _, a := range answers {
			a.want(http.StatusAccepted, "")
			if a.Header().Get("Idempotent-Replayed") == "" {
				fresh++
			}
			if a.Body.String() != answers[0].Body.String() {
				t.Errorf("two answers: %s and %s", a.Body, answers[0].Body)
			}
		}
		list := mine.do("GET", fmt.Sprintf("/v1/messages?chatId=%%2B1555777%04d", round), "").list().Data
		if fresh != 1 || len(list) != 1 {
			t.Errorf("round %d: %d answers are first, and there are %d messages", round, fresh, len(list))
		}
	}
}

// Many devices are linked at once by all servers: the plan's slots are taken, and no more.
func TestAllServersKeepTheDeviceLimit(t *testing.T) {
	t.Parallel()
	s := newServers(t, fakeSandbox{})
	mine := s.tenant("growth")
	const slots, more = 5, 4
	var mu sync.Mutex
	var wg sync.WaitGroup
	codes := map[int]int{}
	for range slots + more {
		id := unlinked(mine)
		wg.Go(func() {
			a := mine.do("POST", "/v1/devices/"+id+"/link", "")
			mu.Lock()
			defer mu.Unlock()
			codes[a.Code]++
		})
	}
	wg.Wait()
	if codes[http.StatusCreated] != slots || codes[http.StatusForbidden] != more {
		t.Errorf("answers by status: %v, want %d created and %d refused", codes, slots, more)
	}
}

// A reader asks each server in turn for what came after the last event it has seen, while all of them write.
func TestFollowingAllServersMissesNothing(t *testing.T) {
	t.Parallel()
	s := newServers(t, fakeSandbox{})
	s.each(func(one *server) { one.api.HurryRates(1000) })
	mine := s.tenant("enterprise")
	const each = 100
	device := postern.DeviceID(connected(mine))
	var wg sync.WaitGroup
	for _, one := range s.all {
		for w := range 4 {
			wg.Go(func() {
				for n := range each / 4 {
					mine.at(one).receive(device, fmt.Sprint(one.dir, w, n))
				}
			})
		}
	}
	written := make(chan struct{})
	go func() { wg.Wait(); close(written) }()
	seen, after, ended := map[string]bool{}, mine.events("type=device.linked").Data[0].EventID, false
	for {
		page := mine.events("type=message.received&limit=7&after=" + after).Data
		for _, e := range page {
			if seen[e.EventID] {
				t.Fatalf("%s is shown twice", e.EventID)
			}
			seen[e.EventID], after = true, e.EventID
		}
		if len(page) == 0 && ended {
			break
		}
		select {
		case <-written:
			ended = ended || len(page) == 0
		default:
		}
	}
	if len(seen) != manyServers*each {
		t.Errorf("%d of %d events are shown", len(seen), manyServers*each)
	}
}

// A stream of each server shows what any server has written. No heartbeat wakes it.
func TestStreamsOfAllServersShowAllEvents(t *testing.T) {
	t.Parallel()
	s := newServers(t, fakeSandbox{})
	s.each(func(one *server) { one.api.SetPulse(time.Hour) })
	mine := s.tenant("enterprise")
	device := postern.DeviceID(connected(mine))
	var readers []*eventReader
	for _, one := range s.all {
		srv := httptest.NewServer(one.door)
		t.Cleanup(srv.Close)
		readers = append(readers, mine.stream(t, srv, "?type=message.received"))
	}
	for i, one := range s.all {
		mine.at(one).receive(device, fmt.Sprint("by ", i))
		for _, r := range readers {
			r.wants(fmt.Sprint("by ", i))
		}
	}
}

// Rates are counted by each server: together they allow as many times the requests of the plan as there are
// servers, and no more.
func TestRatesAreCountedByEachServer(t *testing.T) {
	t.Parallel()
	s := newServers(t, fakeSandbox{})
	s.each(func(one *server) { one.api.StopRates() })
	mine := s.tenant("starter")
	const perMinute = 300
	for range manyServers * perMinute {
		if a := mine.answerTo("GET", "/v1/me"); a.Code != http.StatusOK {
			t.Fatalf("a request is answered %d %s", a.Code, a.Body)
		}
	}
	for range manyServers {
		mine.do("GET", "/v1/me", "").want(http.StatusTooManyRequests, postern.RateLimited)
	}
}

// answerTo is do without a comparison of the answer with the document.
func (t *tenant) answerTo(method, target string) *answerT {
	return t.answer(t.request(method, target, "", "Authorization", "Bearer "+t.key))
}
