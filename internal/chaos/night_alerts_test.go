package chaos_test

import (
	"fmt"
	"net/http"
	"time"
)

// faultsOfAlerts are those that only alerts tell of.
func faultsOfAlerts() []fault {
	fire := func(name string, begin func(*night), alert string) fault {
		return fault{name: name, begin: begin, alerts: []string{alert}, alone: true}
	}
	slow := fire("database slow", (*night).slowDatabase, "PosternStoreSlow")
	slow.opts.Database = "postgres"
	part := fire("no media storage", func(*night) {}, "PosternWorksInPart")
	part.opts.Database, part.opts.Flags = "postgres", []string{"--media-url", ""}
	part.opts.Texts = true
	hang := fire("receiver that hangs", func(n *night) { n.undo(n.toReceiver.cut()) }, "PosternDeliveriesLag")
	hang.opts.Room = 80
	return []fault{
		slow, part, hang,
		fire("device banned", func(n *night) { n.world.fault(n.devices[0].number, "ban") }, "PosternDevicesLost"),
		fire("messages to nobody", (*night).sendToNobody, "PosternMessagesFail"),
		fire("three crashes", (*night).crashThrice, "PosternRestarts"),
		fire("a program that does not wait", (*night).hammer, "PosternThrottles"),
	}
}

// untilAlert repeats something until the alert of the fault fires.
func (n *night) untilAlert(do func()) {
	n.t.Helper()
	n.must("an alert", func() bool { do(); return n.alerted() })
}

// slowDatabase holds PostgreSQL up again and again, as a disk that is too slow does. In between it gives time for a few
// commits only: on a fast machine, more than 19 would end for each slow one otherwise, and the alert is about one in
// twenty.
func (n *night) slowDatabase() {
	n.untilAlert(func() {
		release := n.cluster.Hold(n.t)
		<-time.After(900 * time.Millisecond)
		release()
		<-time.After(15 * time.Millisecond)
	})
}

func (n *night) sendToNobody() {
	n.untilAlert(func() {
		for range 10 {
			n.probes++
			n.request(http.MethodPost, "/v1/messages", map[string]any{
				"deviceId": n.devices[0].id, "to": nobody, "body": fmt.Sprint("to nobody ", n.probes),
			}, "")
		}
	})
}

func (n *night) crashThrice() {
	for range 3 {
		n.kill()
		n.boot()
		n.watched()
	}
}

// hammer makes requests with the key of a small plan until enough were refused.
func (n *night) hammer() {
	var made struct{ ID, Key string }
	n.command(&made, "workspace", "create", "--name", "small", "--plan", "starter")
	n.command(&made, "key", "create", "--workspace", made.ID, "--name", "hammer")
	header := http.Header{"Authorization": {"Bearer " + made.Key}}
	n.untilAlert(func() {
		for range 300 {
			url, _ := n.where()
			_ = caller{n.driver.http, header}.call(http.MethodGet, url+"/v1/devices", nil, nil) // 429 is what is wanted
		}
	})
}

// watched waits until Prometheus has scraped the server as it runs now.
func (n *night) watched() {
	n.t.Helper()
	n.prometheus.watch(n.fault.name, n.ops())
	started := n.metrics()["process_start_time_seconds"]
	n.must("a scrape", func() bool { return n.prometheus.value(n.fault.name, "process_start_time_seconds") == started })
}
