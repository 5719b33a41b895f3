package store

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	storage "postern/internal/db"
	"postern/internal/postern"
)

// finds returns the ids of all results of a search, page by page.
func finds(t *testing.T, db *Store, ws postern.WorkspaceID, s MessageSearch, limit int) (ids []string) {
	t.Helper()
	for below := (MessagePlace{}); ; {
		p, err := db.Messages.Search(t.Context(), ws, s, below, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range p.Messages {
			ids = append(ids, string(m.ID))
		}
		if !p.More {
			return ids
		}
		if below.N != 0 && p.Last.At >= below.At && p.Last.N >= below.N {
			t.Fatalf("a page from below %v ends at %v", below, p.Last)
		}
		below = p.Last
	}
}

// receiveTexts records messages of a contact with these texts.
func receiveTexts(t *testing.T, db *Store, d postern.Device, texts ...string) {
	t.Helper()
	var list []RecordInbound
	for i, text := range texts {
		list = append(list, inboundOf(d, fmt.Sprint("x", i), "lid:1", text))
	}
	writeAll(t, db, list...)
}

// messagesOf returns the first page of a list.
func messagesOf(t *testing.T, db *Store, ws postern.WorkspaceID, q MessageSearch) []postern.Message {
	t.Helper()
	p, err := db.Messages.Search(t.Context(), ws, q, MessagePlace{}, 50)
	if err != nil {
		t.Fatal(err)
	}
	return p.Messages
}

func TestSearchFindsByEveryFilter(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		d, e := newDevice(t, db, ws, postern.Connected), newDevice(t, db, ws, postern.Connected)
		foreign := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		queue(t, db, foreign)
		one, two, three := queue(t, db, d), queue(t, db, e), queue(t, db, d)
		in := inboundOf(d, "A", "lid:1", "hi")
		in.Message.ChatID = "+15550007777"
		if err := db.Messages.RecordInbound(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if err := db.Outbox.Finish(t.Context(), FinishOutbound{
			MessageID: one.ID, Status: postern.Failed, At: testNow,
			Failure: postern.Failure{Code: postern.RecipientNotFound},
		}); err != nil {
			t.Fatal(err)
		}
		a, b, c, x := string(one.ID), string(two.ID), string(three.ID), string(in.Message.ID)
		for _, tt := range []struct {
			name   string
			search MessageSearch
			want   []string
		}{
			{"all", MessageSearch{}, []string{x, c, b, a}},
			{"device", MessageSearch{DeviceID: d.ID}, []string{x, c, a}},
			{"number", MessageSearch{ChatID: "+15551234567"}, []string{c, b, a}},
			{"number and device", MessageSearch{ChatID: "+15551234567", DeviceID: d.ID}, []string{c, a}},
			{"direction", MessageSearch{Direction: postern.Inbound}, []string{x}},
			{"failed", MessageSearch{Statuses: []string{"failed"}}, []string{a}},
			{"failed of a device", MessageSearch{Statuses: []string{"failed"}, DeviceID: e.ID}, nil},
			{"expired", MessageSearch{Statuses: []string{"expired"}}, nil},
			{"texts", MessageSearch{Kind: postern.KindText}, []string{x, c, b, a}},
			{"polls", MessageSearch{Kind: postern.KindPoll}, nil},
			{"queued", MessageSearch{Statuses: []string{"queued"}}, []string{c, b}},
			{"devices of a key", MessageSearch{Devices: []postern.DeviceID{e.ID}}, []string{b}},
			{"no device", MessageSearch{Devices: []postern.DeviceID{}}, nil},
			{"another workspace's device", MessageSearch{DeviceID: foreign.ID}, nil},
			{"since then", MessageSearch{Since: testNow}, []string{x, c, b, a}},
			{"since then, of a chat", MessageSearch{Since: testNow, ChatID: "+15550007777"}, []string{x}},
			{"since later", MessageSearch{Since: testNow + 1}, nil},
			{"until then", MessageSearch{Until: testNow}, nil},
			{"until then, of a chat", MessageSearch{Until: testNow, ChatID: "+15550007777"}, nil},
			{"until later, of a device", MessageSearch{Until: testNow + 1, DeviceID: e.ID}, []string{b}},
			{"until later, failed", MessageSearch{Since: 1, Until: testNow + 1, Statuses: []string{"failed"}}, []string{a}},
			{"archived", MessageSearch{Archived: true}, nil},
		} {
			sameText(t, tt.name, finds(t, db, ws, tt.search, 2), tt.want...)
		}
	})
}

// The list of a chat is shown around a message, with as many newer ones as there are, up to a
// number.
func TestAroundAMessage(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		d, e := newDevice(t, db, ws, postern.Connected), newDevice(t, db, newWorkspace(t, db), postern.Connected)
		var list []postern.Message
		for range 5 {
			list = append(list, queue(t, db, d))
			queue(t, db, e) // of another workspace, to the same number
		}
		for i, want := range []int{3, 4, 5, 5, 5} {
			place, err := db.Messages.Around(t.Context(), list[i], 2)
			if err != nil || (place.N == 0) != (want == 5) {
				t.Fatalf("the place of message %d is %+v, %v", i, place, err)
			}
			q := MessageSearch{DeviceID: d.ID, ChatID: list[i].ChatID}
			p, err := db.Messages.Search(t.Context(), ws, q, place, 10)
			if err != nil || len(p.Messages) != want || p.Messages[0].ID != list[want-1].ID {
				t.Errorf("around message %d there are %d, want %d (%v)", i, len(p.Messages), want, err)
			}
		}
	})
}

// fillMessages adds n messages, of which the oldest has failed.
func fillMessages(t *testing.T, db *Store, d postern.Device, n int) {
	t.Helper()
	err := db.db.Do(t.Context(), opFunc(func(t *tx) error {
		for i := range n {
			m := outbound(d)
			m.Status = postern.Sent
			if i == 0 {
				m.Status = postern.Failed
			}
			if err := t.Each(addMessages, [][]any{newMessage(m, postern.NormalLane, "", false)}); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
}

// A condition without an index is checked on a bounded part per page, and the next page
// continues behind it; failed messages are found at once, however old they are.
func TestSearchLooksAtABoundedPart(t *testing.T) {
	t.Parallel()
	db := engine{}.open(t)
	d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
	fillMessages(t, db, d, messageScan+10)
	p, err := db.Messages.Search(t.Context(), d.WorkspaceID, MessageSearch{Direction: postern.Inbound},
		MessagePlace{}, 50)
	if err != nil || len(p.Messages) != 0 || !p.More {
		t.Fatalf("found %d, more %t, %v; want an empty page with more behind it", len(p.Messages), p.More, err)
	}
	p, err = db.Messages.Search(t.Context(), d.WorkspaceID, MessageSearch{Direction: postern.Inbound}, p.Last, 50)
	if err != nil || p.More {
		t.Fatalf("the second page: more %t, %v", p.More, err)
	}
	p, err = db.Messages.Search(t.Context(), d.WorkspaceID, MessageSearch{Statuses: []string{"failed"}, DeviceID: d.ID},
		MessagePlace{}, 50)
	if err != nil || len(p.Messages) != 1 || p.More {
		t.Errorf("failed: %d on the first page, more %t, %v", len(p.Messages), p.More, err)
	}
}

// A period is found by the time of its messages, and not by their numbers: the clock may
// have been set back.
func TestPeriodIsFoundInTheOrderOfTime(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		at := map[int]string{}
		for _, second := range []int{5, 6, 1, 2, 7, 3, 3} {
			in := inboundOf(d, fmt.Sprintf("A%d-%d", second, len(at)), "lid:1", "hi")
			in.Message.CreatedAt = testNow.Add(time.Duration(second) * time.Second)
			if err := db.Messages.RecordInbound(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			at[second] = string(in.Message.ID) // of the later one
		}
		second := func(n int) postern.Time { return testNow.Add(time.Duration(n) * time.Second) }
		for limit := 1; limit < 4; limit++ {
			got := finds(t, db, d.WorkspaceID, MessageSearch{Since: second(4), Until: second(7)}, limit)
			sameText(t, "from 4 to 7", got, at[6], at[5])
			got = finds(t, db, d.WorkspaceID, MessageSearch{Until: second(4)}, limit)
			if len(got) != 4 || got[0] != at[3] || got[2] != at[2] || got[3] != at[1] {
				t.Errorf("until 4, %d at a time, there are %v of %v", limit, got, at)
			}
		}
	})
}

func chatIDs(t *testing.T, db *Store, d postern.Device) (ids []string) {
	t.Helper()
	list, err := db.Chats.Newest(t.Context(), d.WorkspaceID, newestIn(t, db, d.ID))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		ids = append(ids, fmt.Sprint(c.ChatID, " ", c.Name, " ", c.Content.Text))
	}
	return ids
}

// newestIn returns the numbers of the newest messages of the chats of a device, unless they are of an earlier number.
func newestIn(t *testing.T, db *Store, d postern.DeviceID) (numbers []int64) {
	t.Helper()
	err := db.db.Rows(t.Context(), `SELECT c.newest FROM chat c JOIN device d ON d.id = c.device_id
		WHERE c.device_id = $1 AND c.newest > d.history_from`, []any{d}, func(r *sql.Rows) error {
		var n int64
		err := r.Scan(&n)
		numbers = append(numbers, n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

func TestChatsFollowTheirNewestMessage(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		arrive := func(number, name, body string) postern.Message {
			in := inboundOf(d, "A"+body, "lid:1", body)
			in.Message.ChatID, in.Message.FromName = number, name
			if err := db.Messages.RecordInbound(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if err := db.Messages.RecordInbound(t.Context(), in); err != nil { // again: nothing changes
				t.Fatal(err)
			}
			return in.Message
		}
		arrive("+15550000001", "Ada", "1")
		arrive("+15550000002", "Bob", "2")
		sameText(t, "chats", chatIDs(t, db, d), "+15550000002 Bob 2", "+15550000001 Ada 1")
		arrive("+15550000001", "Ada L.", "3")
		queue(t, db, d)
		sameText(t, "chats", chatIDs(t, db, d), "+15551234567  hello", "+15550000001 Ada L. 3", "+15550000002 Bob 2")
		if got := count(t, db, `SELECT count(*) FROM chat`); got != 3 {
			t.Errorf("%d chats are kept, want 3", got)
		}
		if _, _, err := db.Messages.Remove(t.Context(), d.WorkspaceID, testNow+1, 0); err != nil {
			t.Fatal(err)
		}
		sameText(t, "after the removal", chatIDs(t, db, d), "+15551234567  hello")
		foreign := newWorkspace(t, db)
		if list, err := db.Chats.Newest(t.Context(), foreign, newestIn(t, db, d.ID)); err != nil || len(list) != 0 {
			t.Errorf("another workspace sees %d chats, %v", len(list), err)
		}
	})
}

func TestChatsOfAnEarlierNumberAreNotShown(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Unlinked)
		linkTo(t, db, d, "+15550001111")
		old := queue(t, db, d)
		if err := db.Outbox.Finish(t.Context(), FinishOutbound{
			MessageID: old.ID, Status: postern.Sent, SentAt: testNow,
			At: testNow,
		}); err != nil {
			t.Fatal(err)
		}
		linkTo(t, db, d, "+15550009999")
		sameText(t, "chats", chatIDs(t, db, d))
		sameText(t, "search", finds(t, db, d.WorkspaceID, MessageSearch{DeviceID: d.ID}, 10))
	})
}

// A page of messages is found by an index that contains only candidates.
func TestSearchGoesThroughItsIndexes(t *testing.T) {
	t.Parallel()
	db := engine{}.open(t)
	for _, tt := range []struct {
		search MessageSearch
		want   string
	}{
		{MessageSearch{DeviceID: "d", ChatID: "c"}, "message_conversation (workspace_id=? AND chat_id=? AND n"},
		{MessageSearch{ChatID: "c", Since: 1}, "message_conversation (workspace_id=? AND chat_id=? AND n"},
		{
			MessageSearch{Since: 1, DeviceID: "d"},
			"message_time (workspace_id=? AND created_at>? AND created_at<?)",
		},
		{MessageSearch{DeviceID: "d", Statuses: []string{"sent"}}, "message_device (device_id=? AND n"},
		{MessageSearch{DeviceID: "d", Statuses: []string{"failed"}}, "message_failed (workspace_id=? AND n"},
		{MessageSearch{Statuses: []string{"queued"}}, "message_workspace (workspace_id=? AND n"},
	} {
		goesBy(t, db, lastOf(tt.search.way("w")), tt.want)
		goesBy(t, db, db.Messages.searched(tt.search.way("w")), tt.want)
		goesBy(t, db, db.Messages.searched(tt.search.way("w")), "INTEGER PRIMARY KEY (rowid=?)")
	}
	newest := `WITH named (id) AS ` + db.db.InList(2) + ` ` + newestOf
	goesBy(t, db, newest, "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)")
	goesBy(t, db, newest, "message_chat (device_id=? AND chat_id=? AND direction=?)")
}

// TestSearchFindsWords: the words of new, changed and removed messages, of one workspace, newest
// first, beside the other filters.
func TestSearchFindsWords(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		foreign := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		receive := func(d postern.Device, id, text string) {
			if err := db.Messages.RecordInbound(t.Context(), inboundOf(d, id, "lid:1", text)); err != nil {
				t.Fatal(err)
			}
		}
		index := func() { indexAll(t, db) }
		find := func(q MessageSearch) (ids []string) {
			p, err := db.Messages.Search(t.Context(), d.WorkspaceID, q, MessagePlace{}, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range p.Messages {
				ids = append(ids, m.NetworkID)
			}
			return ids
		}
		receiveTexts(t, db, d, slices.Repeat([]string{"nothing of interest"}, wordChunk)...) // more than one chunk
		receive(d, "a", "Your invoice is naïve: 発票 'quoted' \"twice\" & | ! :* \\")
		receive(foreign, "f", "invoice")
		labeled := inboundOf(d, "b", "lid:1", "Another Invoice, please")
		labeled.Message.Metadata = map[string]string{"order": "4711-B", "by": "Zoë"}
		if err := db.Messages.RecordInbound(t.Context(), labeled); err != nil {
			t.Fatal(err)
		}
		receive(d, "g", "nothing")
		early := inboundOf(d, "h", "lid:1", "changed before its words were written")
		early.Message.Content.Kind, early.Message.About = postern.KindEdit, "g"
		if err := db.Messages.RecordInbound(t.Context(), early); err != nil {
			t.Fatal(err)
		}
		index()
		if got := find(MessageSearch{Text: "👍 !"}); got != nil {
			t.Errorf("a text without words finds %v", got)
		}
		if got := find(MessageSearch{Text: "changed before"}); !slices.Equal(got, []string{"g"}) {
			t.Errorf("a message that was changed early is found as %q", got)
		}
		for query, want := range map[string][]string{
			"invoice": {"b", "a"}, "INVOICE please": {"b"}, "inv": {"b", "a"}, "inv ": nil, "naive invoice": {"a"}, "票": {"a"},
			"4711": {"b"}, "zoe invoice": {"b"}, "order": nil, "quoted twice": {"a"}, "'": nil, "absent": nil, "invoice absent": nil, "nothing of interest invoice": nil,
		} {
			if query == "'" {
				continue // without a word, the filter selects all
			}
			if got := find(MessageSearch{Text: query}); !slices.Equal(got, want) {
				t.Errorf("%q finds %q, want %q", query, got, want)
			}
		}
		if got := find(MessageSearch{Text: "invoice", DeviceID: foreign.ID}); got != nil {
			t.Errorf("another workspace's device has %q", got)
		}
		if got := find(MessageSearch{Text: "invoice", Direction: postern.Outbound}); got != nil {
			t.Errorf("outbound are %q", got)
		}
		edit := inboundOf(d, "e", "lid:1", "a Receipt")
		edit.Message.Content.Kind, edit.Message.About = postern.KindEdit, "a"
		if err := db.Messages.RecordInbound(t.Context(), edit); err != nil {
			t.Fatal(err)
		}
		index()
		if got := find(MessageSearch{Text: "receipt"}); !slices.Equal(got, []string{"a"}) {
			t.Errorf("after an edit, the new word finds %q", got)
		}
		if got := find(MessageSearch{Text: "invoice"}); !slices.Equal(got, []string{"b"}) {
			t.Errorf("after an edit, the old word finds %q", got)
		}
		removeAll(t, db, d.WorkspaceID)
		receive(d, "c", "a new one")
		index()
		if got := find(MessageSearch{Text: "invoice"}); got != nil {
			t.Errorf("removed messages are found: %q", got)
		}
		if got := find(MessageSearch{Text: "new"}); !slices.Equal(got, []string{"c"}) {
			t.Errorf("a message after the removal is found as %q", got)
		}
	})
}

// Every message with the words is on one page, newest first, whether the words are in all messages,
// in some of the newest, in few or in the oldest, also as a beginning.
func TestPagesOfASearchMissNothing(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		foreign := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		every := map[string]int{"common": 1, "often": 25, "seldom": 100, "rarely": 400}
		want := map[string][]string{}
		var list []RecordInbound
		for i := range 3*plainScan + 7 {
			text := "number" + strconv.Itoa(i)
			if i < 10 {
				text += " oldest"
			}
			for word, n := range every {
				if i%n == 0 {
					text += " " + word
				}
			}
			for _, d := range []postern.Device{d, foreign} {
				in := inboundOf(d, "N"+strconv.Itoa(i), "lid:1", text)
				list = append(list, in)
				for word := range strings.FieldsSeq(text) {
					want[string(d.ID)+word] = append(want[string(d.ID)+word], string(in.Message.ID))
				}
			}
		}
		writeAll(t, db, list...)
		indexAll(t, db)
		for _, tt := range []struct{ query, word string }{
			{"common", "common"},
			{"commo", "common"},
			{"common ", "common"},
			{"often", "often"},
			{"OFT", "often"},
			{"seldom", "seldom"},
			{"sel common", ""},
			{"common sel", "seldom"},
			{"rarely ", "rarely"},
			{"ra", "rarely"},
			{"oldest", "oldest"},
			{"common old", "oldest"},
			{"number7 ", "number7"},
			{"absent", ""},
		} {
			var ids []string
			for _, id := range slices.Backward(want[string(d.ID)+tt.word]) {
				if tt.query != "common old" || slices.Contains(want[string(d.ID)+"common"], id) {
					ids = append(ids, id)
				}
			}
			for _, q := range []MessageSearch{{Text: tt.query}, {Text: tt.query, DeviceID: d.ID, Since: 1}} {
				if got := finds(t, db, d.WorkspaceID, q, 100); !slices.Equal(got, ids) {
					t.Errorf("%+v finds %d messages, want %d", q, len(got), len(ids))
				}
			}
		}
	})
}

// The beginning of a common word is found in the messages themselves with SQLite, whose index
// would collect all messages that have it.
func TestCommonBeginningNeedsNoIndex(t *testing.T) {
	t.Parallel()
	db := engine{}.open(t)
	d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
	receiveTexts(t, db, d, slices.Repeat([]string{"hello"}, plainScan+1)...)
	p, err := db.Messages.Search(t.Context(), d.WorkspaceID, MessageSearch{Text: "hel"}, MessagePlace{}, 50)
	if err != nil || len(p.Messages) != 50 || !p.More {
		t.Errorf("before the index is written, %d messages are found, more %t, %v", len(p.Messages), p.More, err)
	}
}

// PostgreSQL looks for common words in the newest messages, and for rare ones not in all messages of
// the workspace, although it has no statistics before its next autovacuum.
func TestWordsOfPostgreSQLNeedNoStatistics(t *testing.T) {
	t.Parallel()
	db := engine{postgres: true}.open(t)
	d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
	receiveTexts(t, db, d, slices.Repeat([]string{"hello"}, 3*plainScan)...)
	indexAll(t, db)
	w, err := db.Messages.vectorWay(t.Context(), d.WorkspaceID, MessageSearch{Text: "hel"}, "'hel':*",
		MessagePlace{N: math.MaxInt64}, 50)
	if err != nil || w.from != "message_word" || w.last.N == 0 {
		t.Errorf("a common word: %+v, %v", w, err)
	}
	w, err = db.Messages.vectorWay(t.Context(), d.WorkspaceID, MessageSearch{Text: "x"}, "'x':*",
		MessagePlace{N: math.MaxInt64}, 50)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	err = db.db.Rows(t.Context(), `EXPLAIN SELECT n FROM `+strings.ReplaceAll(w.from, "?", "'x'"), nil,
		func(r *sql.Rows) error {
			var step string
			err := r.Scan(&step)
			steps = append(steps, step)
			return err
		})
	if got := strings.Join(steps, "\n"); err != nil || strings.Contains(got, "message_word_pkey") {
		t.Errorf("a rare word: %s, %v", got, err)
	}
}

func indexAll(t *testing.T, db *Store) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = db.Messages.IndexWords(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func goesBy(t *testing.T, db *Store, query, index string) {
	t.Helper()
	query = regexp.MustCompile(`\$\d+`).ReplaceAllString(query, "'1'") // EXPLAIN takes no parameters
	if got := plan(t, db, query); !strings.Contains(got, index) {
		t.Errorf("the plan is %s\nwant %s", got, index)
	}
}

// Splitting long texts takes time, for which no other workspace waits: a chunk has few of them.
func TestWordsAreWrittenInSmallChunks(t *testing.T) {
	t.Parallel()
	db := engine{}.open(t)
	d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
	for i := range 4 {
		o := inboundOf(d, strconv.Itoa(i), "lid:1", strings.Repeat("x", wordBytes))
		if err := db.Messages.RecordInbound(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	chunks := 1
	for {
		more, err := db.Messages.IndexWords(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		chunks++
	}
	if chunks != 4 {
		t.Errorf("the words of 4 long texts are written in %d chunks", chunks)
	}
}

// A message that changes or is deleted while its text is split is found by its new words, or not
// at all.
func TestWordsOfAMessageThatChangesMeanwhile(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		write := func(id, about, text string) {
			o := inboundOf(d, id, "lid:1", text)
			if o.Message.About = about; about != "" {
				o.Message.Content.Kind = postern.KindEdit
			}
			if err := db.Messages.RecordInbound(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		read := func(where string) []worded {
			list, _, err := db.Messages.readWords(t.Context(), where+` ORDER BY n LIMIT $2 + 0`, 0)
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		want := func(when, word string, ids ...string) {
			t.Helper()
			p, err := db.Messages.Search(t.Context(), d.WorkspaceID, MessageSearch{Text: word}, MessagePlace{}, 10)
			var got []string
			for _, m := range p.Messages {
				got = append(got, m.NetworkID)
			}
			if err != nil || !slices.Equal(got, ids) {
				t.Errorf("%s, %q finds %q, want %q: %v", when, word, got, ids, err)
			}
		}
		write("a", "", "first")
		fresh := read(`n > $1`)
		write("e1", "a", "second")
		if err := db.Messages.saveWords(t.Context(), fresh, nil); err != nil {
			t.Fatal(err)
		}
		indexAll(t, db)
		want("after a change of a new message", "second", "a")
		want("after a change of a new message", "first")

		write("e2", "a", "third")
		changed := read(`n > $1 AND n IN (SELECT n FROM word_change)`)
		write("e3", "a", "fourth")
		if err := db.Messages.saveWords(t.Context(), nil, changed); err != nil {
			t.Fatal(err)
		}
		indexAll(t, db)
		want("after two changes", "fourth", "a")
		want("after two changes", "third")

		write("e4", "a", "fifth")
		changed = read(`n > $1 AND n IN (SELECT n FROM word_change)`)
		removeAll(t, db, d.WorkspaceID)
		if err := db.Messages.saveWords(t.Context(), nil, changed); err != nil {
			t.Fatal(err)
		}
		left := int64(0)
		if err := db.db.Row(t.Context(), `SELECT count(*) FROM message_word`, nil, &left); err != nil || left != 0 {
			t.Errorf("after the removal of all messages, there are words of %d: %v", left, err)
		}
	})
}

func removeAll(t *testing.T, db *Store, ws postern.WorkspaceID) {
	t.Helper()
	for from, more := int64(0), true; more; {
		var err error
		if from, more, err = db.Messages.Remove(t.Context(), ws, math.MaxInt64, from); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnreadMessagesAreCounted: what arrives counts, once; what was read or removed does not. Writes of one group
// count like those of several.
func TestUnreadMessagesAreCounted(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		unread := func(want int) {
			t.Helper()
			if got := count(t, db, `SELECT coalesce(sum(unread), 0) FROM chat`); got != want {
				t.Errorf("%d are unread, want %d", got, want)
			}
		}
		var list []op
		for i := range 5 {
			in := inboundOf(d, fmt.Sprint("A", i), "lid:1", "hi")
			list = append(list, storage.Item(in))
		}
		reading := func(ids ...string) op {
			return opFunc(ReadElsewhere{DeviceID: d.ID, ChatID: "+15551234567", NetworkIDs: ids}.apply)
		}
		read := func(ids ...string) error { return db.db.Do(t.Context(), reading(ids...)) }
		all := slices.Clone(list)
		all = slices.Insert(all, 3, reading("A0", "A1", "unknown"))
		for _, err := range grouped(db, append(all, list...)...) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := read("A1", "A0"); err != nil { // if the first was written before them
			t.Fatal(err)
		}
		unread(3)
		if err := errors.Join(read("A3"), read("A2")); err != nil {
			t.Fatal(err)
		}
		unread(1)
		call := inboundOf(d, "A5", "lid:1", "")
		call.Message.Content.Kind = postern.KindCall
		if err := db.Messages.RecordInbound(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		unread(1)
		err := db.db.Do(t.Context(), storage.Func(func(t *tx) error {
			return t.Exec(`DELETE FROM message WHERE network_id IN ('A0', 'A4')`)
		}))
		if err != nil {
			t.Fatal(err)
		}
		unread(0)
		if err := db.Messages.RecordInbound(t.Context(), inboundOf(d, "A6", "lid:1", "hi")); err != nil {
			t.Fatal(err)
		}
		unread(1)
	})
}

// However many messages of a chat are unread, their senders are told: each action names at most so many.
func TestManyMessagesAreMarkedAsRead(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		receiveN(t, db, d, postern.MaxReadMarks+3)
		action := outbound(d)
		action.ChatID = inboundOf(d, "A", "lid:1", "").Message.ChatID
		if err := db.Messages.QueueChatRead(t.Context(), QueueAction{Action: action}); err != nil {
			t.Fatal(err)
		}
		var marked int
		err := db.db.Rows(t.Context(), `SELECT body FROM message WHERE device_id = $1 AND about <> '' AND type = 'read'
			ORDER BY n`, []any{d.ID}, func(r *sql.Rows) error {
			read := postern.Content{Kind: postern.KindRead}
			err := r.Scan(&read.Text)
			n := 1 + len(read.ReadMarks())
			if marked += n; n > postern.MaxReadMarks {
				t.Errorf("an action marks %d messages", n)
			}
			return err
		})
		if err != nil || marked != postern.MaxReadMarks+3 {
			t.Errorf("%d messages are marked as read (%v)", marked, err)
		}
	})
}
