package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
)

const outageInFlight = 8 // the default of an endpoint

// outage is a time in which an endpoint responds with 503. Events come all the time.
type outage struct {
	name    string
	events  int
	lasts   time.Duration
	goal    string
	samples int           // on each engine
	apart   time.Duration // between the beginnings of two samples, which run side by side
}

// recovery measures how long after an outage the last event of it arrives, on both engines. The long
// outage is only measured by the subject's own name.
func recovery(t *testing.T) []figure {
	databases := engines(t)
	list := outage{
		name: "an outage of a minute with 100 events", events: 100, lasts: time.Minute, goal: "10 s", samples: rounds,
	}.measure(t, databases)
	if *only != "recover" {
		return list
	}
	return append(list, outage{
		name: "an outage of ten minutes with 20,000 events", events: 20_000, lasts: 10 * time.Minute, goal: "30 s",
		samples: 1, apart: time.Minute,
	}.measure(t, databases)...)
}

// measure runs all samples side by side, because most of an outage is waiting.
func (o outage) measure(t *testing.T, databases []engine) (list []figure) {
	var doors []*door
	for _, e := range databases {
		for range o.samples {
			doors = append(doors, newDoor(t, e.url(t)))
		}
	}
	ended := make([]recovered, len(doors))
	inParallel(len(doors), func(n int) (err error) {
		if err := postern.Sleep(t.Context(), time.Duration(n)*o.apart); err != nil {
			return err
		}
		ended[n], err = doors[n].suffer(t, o)
		return err
	}, t)
	for i, e := range databases {
		list = append(list, o.figure(e, ended[i*o.samples:(i+1)*o.samples]))
	}
	return list
}

// recovered is what was seen after an outage.
type recovered struct {
	first, median, last time.Duration // after the end of the outage
	refused             int64         // POSTs during it
	most                int64         // POSTs at once, at any time
}

func (o outage) figure(e engine, list []recovered) figure {
	f := figure{name: "last webhook after " + o.name + e.on(), unit: "ms"}
	for _, r := range list {
		f.ours = append(f.ours, millis(r.last))
	}
	slices.SortFunc(list, func(a, b recovered) int { return cmp.Compare(a.last, b.last) })
	r := list[len(list)/2]
	most := slices.MaxFunc(list, func(a, b recovered) int { return cmp.Compare(a.most, b.most) }).most
	f.extra = fmt.Sprintf("goal %s, samples: %d; the first after %.1f s, the median after %.1f s; %d POSTs in vain; "+
		"at most %d POSTs at once (allowed %d)",
		o.goal, len(list), r.first.Seconds(), r.median.Seconds(), r.refused, most, outageInFlight)
	return f
}

// door is a receiver that is closed at first, and counts the POSTs that it has not answered.
type door struct {
	*backlog
	open          atomic.Bool
	refused       atomic.Int64
	waiting, most atomic.Int64
	arrived       chan receipt
}

func newDoor(t *testing.T, database string) *door {
	t.Helper()
	d := &door{arrived: make(chan receipt, 100_000)}
	srv := httptest.NewServer(d)
	t.Cleanup(srv.Close)
	d.backlog = newBacklogIn(t, database, srv.URL, outageInFlight)
	return d
}

// ServeHTTP takes a POST, if the door is open.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := d.waiting.Add(1)
	for most := d.most.Load(); now > most && !d.most.CompareAndSwap(most, now); most = d.most.Load() {
		continue
	}
	defer d.waiting.Add(-1) // before the response leaves
	io.Copy(io.Discard, r.Body)
	time.Sleep(slowAnswer)
	if !d.open.Load() {
		d.refused.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	d.arrived <- receipt{r.Header.Get("Webhook-Id"), time.Now()}
}

// suffer lets an outage pass, and waits until all its events have arrived. It is an error if more
// POSTs were under way at once than the endpoint allows.
func (d *door) suffer(t *testing.T, o outage) (r recovered, err error) {
	stop := d.dispatch(t, false)
	defer stop()
	if err := d.record(t.Context(), o); err != nil {
		return r, err
	}
	back := time.Now()
	d.open.Store(true)
	waits, err := d.collect(o.events, back)
	if err != nil {
		return r, err
	}
	r = recovered{waits[0], waits[len(waits)/2], waits[len(waits)-1], d.refused.Load(), d.most.Load()}
	if r.most > outageInFlight {
		err = fmt.Errorf("%d POSTs at once after %s, allowed %d", r.most, o.name, outageInFlight)
	}
	return r, err
}

// record records events at even times until the end of the outage.
func (d *door) record(ctx context.Context, o outage) error {
	began := time.Now()
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	for n := range o.events {
		if err := postern.Sleep(ctx, time.Until(began.Add(o.lasts*time.Duration(n)/time.Duration(o.events)))); err != nil {
			return err
		}
		group.Go(func() {
			if _, err := d.backlog.receive(ctx); err != nil {
				failed.Store(&err)
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return postern.Sleep(ctx, time.Until(began.Add(o.lasts)))
}

// collect waits for so many different events, and returns when they arrived after a time.
func (d *door) collect(events int, from time.Time) (waits []time.Duration, err error) {
	seen := map[string]bool{}
	limit := time.After(testkit.Wait)
	for len(seen) < events {
		select {
		case got := <-d.arrived:
			if !seen[got.id] {
				seen[got.id] = true
				waits = append(waits, got.at.Sub(from))
			}
		case <-limit:
			return nil, fmt.Errorf("%d of %d events arrived", len(seen), events)
		}
	}
	slices.Sort(waits)
	return waits, nil
}
