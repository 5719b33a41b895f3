package store

import (
	"database/sql"
	"regexp"
	"strings"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store/contactid"
)

// plan returns SQLite's plan for a query, whatever its arguments are.
func plan(t *testing.T, db *Store, query string) string {
	t.Helper()
	var steps []string
	args := make([]any, strings.Count(query, "$")) // a parameter may be used twice
	err := db.db.Rows(t.Context(), `EXPLAIN QUERY PLAN `+query, args, func(r *sql.Rows) error {
		var id, parent, x int
		var detail string
		err := r.Scan(&id, &parent, &x, &detail)
		steps = append(steps, detail)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}

// actsPlan returns the query for the acts that a filter selects.
func actsPlan(f ActFilter) string {
	condition, _ := f.where("ws", false)
	return actsWhere(condition)
}

// plansOf returns SQLite's plans for the queries that a method of the store makes.
func plansOf(t *testing.T, db *Store, ran *recorder, read func() error) string {
	t.Helper()
	ran.take()
	if err := read(); err != nil {
		t.Fatal(err)
	}
	var plans []string
	for _, query := range ran.take() {
		plans = append(plans, plan(t, db, query))
	}
	return strings.Join(plans, "\n")
}

// Files that expire find the messages that wait for them through the index of files.
func TestSendersOfFilesAreFoundByTheFiles(t *testing.T) {
	t.Parallel()
	db, _ := engine{}.openTraced(t)
	got := plan(t, db, sendersOf(`(SELECT value FROM json_each($1))`))
	if !strings.Contains(got, "USING INDEX message_media (media_id=?)") {
		t.Errorf("the plan is\n%s", got)
	}
}

// The chat of each queued message, and the messages and deliveries to repeat, are looked up
// through indexes that contain only such rows. Otherwise a long queue to one chat would be
// read once for each of its messages.
func TestQueuesAreLookedAtThroughTheirIndexes(t *testing.T) {
	t.Parallel()
	db, ran := engine{}.openTraced(t)
	const lately = "USING INDEX message_chat (device_id=? AND chat_id=? AND direction=? AND created_at>?)"
	const known = "USING INDEX message_known (device_id=? AND chat_id=?"
	next := func(kind ChatKind) func() error {
		return func() error {
			_, err := db.Outbox.NextOf(t.Context(), "d", kind, testNow, []string{"c"}, 65)
			return err
		}
	}
	repeating := func() error {
		_, err := db.Outbox.Repeating(t.Context(), "d", 65)
		return err
	}
	waiting := func() error {
		_, err := db.Outbox.Next(t.Context(), "d", nil, 65)
		return err
	}
	inChat := func() error {
		_, _, err := db.Messages.InChat(t.Context(), "d", "c", "n")
		return err
	}
	starts := func() error {
		_, err := db.Outbox.StartsChat(t.Context(), postern.Message{DeviceID: "d", ChatID: "+15550000001"})
		return err
	}
	due := func() error {
		_, err := db.Deliveries.Due(t.Context(), "e", testNow, false, 9)
		return err
	}
	toSend := func() error {
		_, err := db.Media.Fetching(t.Context(), 4, 64)
		return err
	}
	received := func() error {
		_, err := db.Media.Waiting(t.Context(), "d", 64)
		return err
	}
	queued := func() error {
		_, err := db.Devices.Queued(t.Context(), "w", "")
		return err
	}
	waitsIn := func() error {
		_, err := db.Outbox.WaitsIn(t.Context(), "d", "c")
		return err
	}
	line := func() error {
		_, _, err := db.Deliveries.NextInLine(t.Context(), "e", testNow)
		return err
	}
	for name, tt := range map[string]struct {
		read func() error
		want []string
	}{
		"files to send": {toSend, []string{
			"SEARCH k USING COVERING INDEX media_to_send (workspace_id>?)",
			"SEARCH f USING COVERING INDEX sqlite_autoindex_media_1 (id=?)",
			"SEARCH k USING COVERING INDEX media_to_send (workspace_id=?)",
		}},
		"waits in":       {waitsIn, []string{"INDEX message_waiting (chat_id=? AND device_id=?)"}},
		"queued":         {queued, []string{"SEARCH m USING COVERING INDEX message_unsent (device_id=?)"}},
		"received files": {received, []string{"INDEX media_received (device_id=?)"}},
		"line":           {line, []string{"INDEX delivery_line (endpoint_id=? AND first_attempt_at>?)"}},
		"repeating":      {repeating, []string{"INDEX message_repeat (device_id=?"}},
		"waiting":        {waiting, []string{"INDEX message_unsent (device_id=? AND lane=?)"}},
		"answering":      {next(Answering), []string{lately}},
		"known":          {next(Known), []string{lately, known}},
		"fresh":          {next(Fresh), []string{lately, known}},
		"in a chat":      {inChat, []string{"INDEX message_network (device_id=? AND network_id=?"}},
		"starts": {starts, []string{
			"SEARCH i USING INDEX message_chat (device_id=? AND chat_id=? AND direction=?)", "SEARCH j USING PRIMARY KEY",
		}},
		"deliveries": {due, []string{"INDEX delivery_again (endpoint_id=? AND due_at<?)"}},
	} {
		got := plansOf(t, db, ran, tt.read)
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the plan is %s\nwant %s", name, got, want)
			}
		}
	}
	for query, want := range map[string]string{
		readPosition:  "SEARCH w USING COVERING INDEX message_unsent (device_id=? AND lane=? AND n<?)",
		readActions:   "USING INDEX message_about (device_id=? AND about=?)",
		readEvents:    "USING INDEX event_message (message_id=?)",
		readLastPosts: "USING INDEX delivery_event (event_id=?)",
		unsendable:    "SEARCH message USING INDEX message_unsent (device_id=?",
		withQueue:     "SEARCH message USING COVERING INDEX message_unsent (device_id>?",
	} {
		if got := plan(t, db, query); !strings.Contains(got, want) {
			t.Errorf("the plan is %s\nwant %s", got, want)
		}
	}
}

// Accepting a message looks at the messages of its chat that wait, and at no others.
func TestLanesAreLookedUpByIndexes(t *testing.T) {
	t.Parallel()
	db, ran := engine{}.openTraced(t)
	d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
	queue(t, db, d)
	got := plansOf(t, db, ran, func() error {
		m := outbound(d)
		m.Priority = postern.HighPriority
		return db.Messages.Queue(t.Context(), QueueMessage{Message: m, Month: MonthOf(testNow)})
	})
	for _, want := range []string{
		"SEARCH w USING COVERING INDEX message_unsent (device_id=? AND lane=?)", // do others than normal ones wait?
		"SEARCH m USING INDEX message_waiting (chat_id=? AND device_id=?)",      // of the chat
		"SEARCH message USING INDEX message_waiting (chat_id=? AND device_id=?)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the plans are %s\nwant %s", got, want)
		}
	}
}

// The figures on the dashboard are looked up in indexes, without scanning tables.
func TestFiguresAndTheNewestEventsAreLookedUpByIndexes(t *testing.T) {
	t.Parallel()
	db, ran := engine{}.openTraced(t)
	for want, read := range map[string]func() error{
		"SEARCH message_hour USING PRIMARY KEY (workspace_id=? AND hour>?)": func() error {
			_, err := db.Hours.MessageSpans(t.Context(), "w", testNow, time.Hour)
			return err
		},
		"SEARCH message_minute USING PRIMARY KEY (device_id=? AND minute>?)": func() error {
			_, err := db.Hours.DeviceSpans(t.Context(), "w", "d", testNow, time.Minute)
			return err
		},
		"SEARCH endpoint_hour USING PRIMARY KEY (endpoint_id=? AND hour>?)": func() error {
			_, err := db.Hours.AttemptSpans(t.Context(), "w", testNow, time.Hour)
			return err
		},
		"INDEX message_hour_age (hour<?)": func() error {
			_, err := db.Hours.RemoveMessageHours(t.Context(), testNow)
			return err
		},
		"USING COVERING INDEX event_workspace (workspace_id=? AND position>? AND position<?)": func() error {
			_, err := db.Events.Before(t.Context(), "w", EventFilter{}, 5, 1, 9)
			return err
		},
		"USING INDEX event_workspace (workspace_id=? AND position>? AND position<?)": func() error {
			_, err := db.Events.Before(t.Context(), "w", EventFilter{Types: []postern.EventType{postern.MessageSent}},
				5, 1, 9)
			return err
		},
	} {
		if got := plansOf(t, db, ran, read); !strings.Contains(got, want) ||
			strings.Contains(got, "TEMP B-TREE FOR ORDER") {
			t.Errorf("the plan is %s\nwant %s", got, want)
		}
	}
}

// The lists of the dashboard are found by indexes, without reading rows that are not
// listed.
func TestListsOfTheDashboardHaveTheirIndexes(t *testing.T) {
	t.Parallel()
	db := engine{}.open(t)
	for query, want := range map[string]string{
		deviceHealth:    "INDEX event_health (device_id=? AND position<?)",
		keysOfWorkspace: "INDEX api_key_workspace (workspace_id=?)",
		replaysOf:       "INDEX replay_endpoint (endpoint_id=?)",
		newerThan:       "INDEX message_conversation (workspace_id=? AND chat_id=? AND n>?)",

		actsPlan(ActFilter{}):                       "INDEX audit_workspace (workspace_id=? AND n<?)",
		actsPlan(ActFilter{Before: 5}):              "INDEX audit_workspace (workspace_id=? AND n<?)",
		actsPlan(ActFilter{Email: "a", Before: 5}):  "INDEX audit_user (workspace_id=? AND user_id=? AND n<?)",
		actsPlan(ActFilter{Kind: "key", Before: 5}): "INDEX audit_kind (workspace_id=? AND kind=? AND n<?)",

		actsPlan(ActFilter{Email: "a", Kind: "key", Before: 5}): "INDEX audit_user_kind (workspace_id=? AND user_id=? " +
			"AND kind=? AND n<?)",
	} {
		if got := plan(t, db, query); !strings.Contains(got, want) {
			t.Errorf("the plan is %s\nwant %s", got, want)
		}
	}
}

// The figures of the whole server are counted through indexes that contain only the counted
// rows, or found by keys, however many messages and deliveries there are.
func TestFiguresOfTheServerHaveTheirIndexes(t *testing.T) {
	t.Parallel()
	db := engine{}.open(t)
	for query, want := range map[string]string{
		devicesByState:  "USING COVERING INDEX device_state",
		messagesQueued:  "SCAN message USING COVERING INDEX message_unsent", // an index of the queue only
		oldestQueued:    "SCAN message USING INDEX message_expiry",
		messagesLeft:    "USING INDEX message_repeat (device_id>?)",
		deliveriesWait:  "USING COVERING INDEX delivery_due",
		deliveriesDue:   "USING COVERING INDEX delivery_due (endpoint_id=? AND due_at<?)",
		oldestDue:       "USING COVERING INDEX delivery_due (endpoint_id=?)",
		allMessageHours: "INDEX message_hour_age (hour>?)",
		allAttemptHours: "INDEX endpoint_hour_age (hour>?)",
		workspacesUsed:  "SEARCH w USING PRIMARY KEY (id>? AND id<?)",
	} {
		if got := plan(t, db, query); !strings.Contains(got, want) || strings.Contains(got, "TEMP B-TREE FOR ORDER") {
			t.Errorf("the plan is %s\nwant %s", got, want)
		}
	}
}

// What is chosen by its id, on the network or here, is not found by reading all messages or events of its device or
// workspace. Without statistics, SQLite does so when a statement allows it.
func TestRowsWithAnIDAreNotSearchedFor(t *testing.T) {
	t.Parallel()
	s, ran := engine{}.openTraced(t)
	ws := newWorkspace(t, s)
	d := newDevice(t, s, ws, postern.Connected)
	record := func(o RecordInbound) {
		t.Helper()
		if err := s.Messages.RecordInbound(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"A", "B", "C"} {
		record(inboundOf(d, id, "lid:1", "text"))
	}
	e := newEndpoint(t, s, ws, "*")
	if err := s.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
		t.Fatal(err)
	}
	r := replayOf(t, s, e, func(r *postern.Replay) { r.Last = 0 })
	const ofChat = "INDEX message_known (device_id=? AND chat_id=? AND n>?"
	for _, tt := range []struct {
		name string
		do   func() error
		want string
	}{
		{"react", func() error {
			reaction := inboundOf(d, "D", "lid:1", "")
			reaction.Message.About, reaction.Message.Content = "A", postern.Content{Kind: postern.KindReaction, Text: "x"}
			return s.Messages.RecordInbound(t.Context(), reaction)
		}, "INDEX message_network (device_id=? AND network_id=?"},
		{"read elsewhere", func() error {
			return s.Messages.ReadElsewhere(t.Context(), ReadElsewhere{d.ID, "+15551234567", []string{"A"}})
		}, "INDEX message_network (device_id=? AND network_id=?"},
		{"read a chat", func() error {
			read := QueueAction{Action: outbound(d)}
			read.Action.ChatID = "+15551234567"
			return s.Messages.QueueChatRead(t.Context(), read)
		}, ofChat},
		{"read until", func() error {
			return s.db.Do(t.Context(), db.Func(func(t *db.Tx) error { return ReadUntil(t, d.ID, "+15551234567", testNow) }))
		}, ofChat},
		{"move a chat", func() error {
			return s.db.Do(t.Context(), db.Func(func(t *db.Tx) error {
				_, err := contactid.Move(t, d.ID, "lid:1", "+15551234567")
				return err
			}))
		}, "INDEX message_conversation (workspace_id=? AND chat_id=?)"},
		{"erase messages", func() error {
			_, err := s.Messages.RemoveThese(t.Context(), ws, []string{"msg_1"}, false)
			return err
		}, "SEARCH e USING INDEX event_message (message_id=?)"},
		{"remove messages", func() error {
			_, _, err := s.Messages.Remove(t.Context(), ws, testNow+1, 0)
			return err
		}, "SEARCH message USING INDEX sqlite_autoindex_message_1 (id=?)"},
		{"remove events", func() error {
			_, _, err := s.Events.Remove(t.Context(), ws, testNow+1, 0)
			return err
		}, "SEARCH event USING INDEX sqlite_autoindex_event_1 (id=?)"},
		{"replay", func() error {
			_, err := s.Replays.Step(t.Context(), r.ID, testNow)
			return err
		}, "INDEX delivery_replay (replay_id=?)"},
	} {
		got := plansOf(t, s, ran, tt.do)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: the plans are %s\nwant %s", tt.name, got, tt.want)
		}
		if all := wholeLog.FindString(got); all != "" {
			t.Errorf("%s: %s reads all of them", tt.name, all)
		}
	}
}

var wholeLog = regexp.MustCompile(`(message|event)_\w+ \((workspace_id|device_id)=\?\)|message_device \(device_id=\? AND n>\?|` +
	`SCAN d `)
