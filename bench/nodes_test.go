package bench

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/testkit"

	"github.com/jackc/pgx/v5"
)

const (
	nodeDevices   = 20
	nodeCallers   = 64
	nodeTexts     = 32 * nodeCallers // of a sample
	nodeEndpoints = 6                // that wait for the texts of a sample, and get them all at once
)

// nodes measures the same load with one server on SQLite, one on PostgreSQL, and three that share a
// PostgreSQL database. Each server is a process of its own; so are the simulated vendors.
func nodes(t *testing.T) (list []figure) {
	databases := engines(t)
	embedded, one, three := newServers(t, databases[0], 1), newServers(t, databases[1], 1), newServers(t, databases[1], 3)
	for range rounds {
		for _, s := range []*servers{embedded, one, three} {
			s.sample()
		}
	}
	for i, what := range []string{"accepted", "sent", "received", "delivered"} {
		list = append(list, embedded.figure(what, i))
		f := one.figure(what, i)
		f.bare, f.floor, f.extra = embedded.rates[i], 0.6, "bare: SQLite"
		list = append(list, f)
		f = three.figure(what, i)
		f.bare, f.extra = one.rates[i], "bare: one server"
		list = append(list, f)
	}
	for i, what := range []string{"sent", "received"} {
		list = append(list, embedded.cost(what, i), one.cost(what, i))
		f := three.cost(what, i)
		f.bare, f.ceiling, f.extra = one.costs[i], 1.25, "bare: one server; "+f.extra
		list = append(list, f)
	}
	return append(list, one.batched(), three.batched())
}

// servers are gateways that share a database.
type servers struct {
	*fleetOf
	name     string
	database string // its URL
	cmds     []*exec.Cmd
	urls     []string
	arrived  [2]atomic.Int64 // webhooks of texts that were sent, and received
	late     atomic.Int64    // webhooks at the endpoints that are paused
	paused   []string        // their ids

	rates    [4][]float64 // accepted, sent, received, delivered
	costs    [2][]float64 // µs of a text that was sent, and received
	ofServer [2][]float64 // the part of PostgreSQL's server
}

func newServers(t *testing.T, e engine, n int) *servers {
	t.Helper()
	s := prepareServers(t, e)
	s.name = fmt.Sprintf("%s, %d server(s)", e.name, n)
	for i := range n {
		cmd, url := s.start([]string{"data", "data2", "data3"}[i])
		s.cmds, s.urls = append(s.cmds, cmd), append(s.urls, url)
	}
	for i := range nodeDevices {
		s.url = s.urls[i%n] // which links the device, and so owns it
		s.grow(i + 1)
	}
	s.receive(s.keys[0], count(&s.arrived[0]), "message.sent")
	s.receive(s.keys[0], count(&s.arrived[1]), "message.received")
	for range nodeEndpoints {
		s.paused = append(s.paused, s.receive(s.keys[0], count(&s.late), "message.received"))
	}
	s.all("pause")
	return s
}

// prepareServers prepares a database and a vendor for servers.
func prepareServers(t *testing.T, e engine) *servers {
	t.Helper()
	s := &servers{fleetOf: newFleet(t), database: e.url(t)}
	s.useDatabase(s.database)
	s.env = append(s.env, "POSTERN_PACE=off", "POSTERN_MEDIA_URL=file://"+filepath.Join(s.dir, "media"))
	return s
}

func count(n *atomic.Int64) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) { n.Add(1) }
}

// all pauses or resumes the endpoints that wait.
func (s *servers) all(action string) {
	s.t.Helper()
	for _, id := range s.paused {
		var none map[string]any
		if status := s.call("POST", s.url+"/v1/webhooks/"+id+"/"+action, s.keys[0], nil, &none); status != http.StatusOK {
			s.t.Fatal(none)
		}
	}
}

// sample takes one sample of each figure.
func (s *servers) sample() {
	s.t.Helper()
	s.measure(0, func() {
		sent := s.arrived[0].Load()
		began := time.Now()
		s.rates[0] = append(s.rates[0], timed(nodeTexts, s.post))
		s.await(&s.arrived[0], sent+nodeTexts)
		s.rates[1] = append(s.rates[1], nodeTexts/time.Since(began).Seconds())
	})
	s.measure(1, func() {
		received := s.arrived[1].Load()
		s.rates[2] = append(s.rates[2], timed(nodeTexts, func() {
			s.write()
			s.await(&s.arrived[1], received+nodeTexts)
		}))
	})
	late := s.late.Load()
	s.rates[3] = append(s.rates[3], timed(nodeTexts*nodeEndpoints, func() {
		s.all("resume")
		s.await(&s.late, late+nodeTexts*nodeEndpoints)
	}))
	s.all("pause")
}

// measure notes the processor time of each text of a sample.
func (s *servers) measure(which int, do func()) {
	s.t.Helper()
	server := func() time.Duration { return databaseTime(s.t) }
	spent := perText(nodeTexts, do, server, func() (sum time.Duration) {
		for _, cmd := range s.cmds {
			sum += processorTimeOf(s.t, cmd.Process.Pid)
		}
		return sum
	})
	if s.database == "" {
		spent[0] = 0
	}
	s.ofServer[which] = append(s.ofServer[which], spent[0])
	s.costs[which] = append(s.costs[which], spent[0]+spent[1])
}

// post requests the texts of a sample, spread over the servers.
func (s *servers) post() {
	inParallel(nodeCallers, func(n int) error {
		for i := range nodeTexts / nodeCallers {
			call := caller(s.keys[0], "POST", s.urls[n%len(s.urls)]+"/v1/messages", `{"deviceId":"`+
				s.devices[(n+i*nodeCallers)%nodeDevices]+`","to":"+15005550002","body":"`+ordinary+`"}`, 202)
			if err := call(); err != nil {
				return err
			}
		}
		return nil
	}, s.t)
}

// write lets a contact write the texts of a sample.
func (s *servers) write() {
	inParallel(nodeDevices, func(n int) error {
		for i := n; i < nodeTexts; i += nodeDevices {
			s.inbound(fmt.Sprintf(ourNumber, n), ordinary)
		}
		return nil
	}, s.t)
}

func (s *servers) await(n *atomic.Int64, want int64) {
	s.t.Helper()
	for deadline := time.Now().Add(testkit.Wait); n.Load() < want; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %d of %d webhooks arrived", s.name, n.Load(), want)
		}
	}
}

func (s *servers) figure(what string, i int) figure {
	return figure{name: "texts " + what + ", " + s.name, unit: "/s", ours: s.rates[i]}
}

func (s *servers) cost(what string, i int) figure {
	return figure{
		name: "processor time of a text " + what + ", " + s.name, unit: "µs", ours: s.costs[i],
		extra: fmt.Sprintf("of all servers, %.0f µs of it in PostgreSQL", median(s.ofServer[i])),
	}
}

// batched measures a bare loop on the same database: it copies the rows of texts that were received, each with
// its event and its first delivery, into tables of the same form, 64 texts in each commit.
func (s *servers) batched() figure {
	f := s.figure("received", 2)
	f.name += ", beside batched rows"
	f.extra = "bare: the rows of a message, an event and a delivery, 64 of each per commit, on one connection"
	conn, err := pgx.Connect(s.t.Context(), s.database)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.t.Context())
	exec := func(query string, args ...any) {
		if _, err := conn.Exec(s.t.Context(), query, args...); err != nil {
			s.t.Fatal(err)
		}
	}
	tables := map[string]string{"message": "direction = 'inbound'", "event": "type = 'message.received'", "delivery": "true"}
	for range rounds {
		for table, which := range tables {
			exec("DROP TABLE IF EXISTS bare_" + table)
			exec("CREATE TABLE bare_" + table + " (LIKE " + table + " INCLUDING ALL)")
			exec("DROP TABLE IF EXISTS rows_" + table)
			exec(fmt.Sprintf("CREATE TABLE rows_%s AS SELECT * FROM %s WHERE %s LIMIT %d", table, table, which, nodeTexts))
		}
		f.bare = append(f.bare, timed(nodeTexts, func() {
			for from := 0; from < nodeTexts; from += nodeCallers {
				exec("BEGIN")
				for table := range tables {
					exec(fmt.Sprintf("INSERT INTO bare_%s SELECT * FROM rows_%s OFFSET %d LIMIT %d", table, table, from, nodeCallers))
				}
				exec("COMMIT")
			}
		}))
	}
	return f
}
