package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"postern/internal/chaos"
	"postern/internal/db/dbtest"
)

// promoteStandby kills the database while a synchronous standby follows it, and promotes the standby. The
// servers reach it under the address of the other one, as behind a proxy of connections.
func (w *world) promoteStandby(_ node, _ *rand.Rand) {
	s := w.cluster.Standby(w.t, true)
	w.flowOn(meanFlow) // what both have
	began := time.Now()
	w.cluster.Kill(w.t)
	s.Promote(w.t)
	w.follow(s)
	w.flowOn(meanFlow / 4)
	w.outages = append(w.outages, time.Since(began))
}

// flowOn waits until more messages have come to their end.
func (w *world) flowOn(n int64) {
	w.t.Helper()
	enough := w.driver.done() + n
	w.await("messages to come to their end", func() bool { return w.driver.done() >= enough })
}

// follow has the servers and the harness use another database server.
func (w *world) follow(c *dbtest.Cluster) {
	w.t.Helper()
	w.cluster, w.url = c, c.Same(w.t, w.url)
	for _, n := range w.nodes {
		n.database.lead("unix", w.socket())
	}
}

// socket is where the database server listens.
func (w *world) socket() string {
	w.t.Helper()
	at, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	return filepath.Join(at.Query().Get("host"), ".s.PGSQL.5432")
}

// outages are how long it took from the end of a database until messages came to their end with its standby.
type outages []time.Duration

func (o outages) String() string {
	if len(o) == 0 {
		return ""
	}
	slices.Sort(o)
	return fmt.Sprintf("\n%d messages had come to their end after the database was killed and its standby promoted: median %s, longest %s of %d",
		meanFlow/4, o[(len(o)-1)/2].Round(10*time.Millisecond), o[len(o)-1].Round(10*time.Millisecond), len(o))
}

// TestStandbyThatLagsIsNamed proves that it is reported when a standby is promoted that has not got everything
// that was accepted: commits do not wait for it, and it is held up for a while.
func TestStandbyThatLagsIsNamed(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{
		Bin: bin, Devices: 4, Callers: 1, Room: 10, Seed: 1, Calm: true, Database: "postgres", Nodes: 2,
	})
	w.driver.start()
	s := w.cluster.Standby(t, false)
	release := s.Hold(t)
	w.flowOn(meanFlow)
	w.cluster.Kill(t)
	for _, n := range w.nodes {
		n.kill()
	}
	release()
	s.Promote(t)
	w.follow(s)
	found := chaos.JudgeNow(w.evidence())
	if !slices.ContainsFunc(found, func(v chaos.Violation) bool { return v.Rule == chaos.AcceptedLost }) {
		t.Errorf("found %v, want %v among it", found, chaos.AcceptedLost)
	}
}
