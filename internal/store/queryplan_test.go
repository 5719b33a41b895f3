package store

import (
	"database/sql"
	"strings"
	"testing"
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
	condition, _ := f.where("ws")
	return actsWhere + condition + ` ORDER BY a.n DESC LIMIT 51`
}

// The chat of each queued message, and the messages and deliveries to repeat, are looked up
// through indexes that contain only such rows. Otherwise a long queue to one chat would be
// read once for each of its messages.
func TestQueuesAreLookedAtThroughTheirIndexes(t *testing.T) {
	t.Parallel()
	db := engine{}.open(t)
	const queued = `SELECT n FROM message m WHERE device_id = 'd' AND status IN ('queued', 'sending') AND `
	for query, want := range map[string]string{
		queued + hasMessages():                          "USING INDEX message_known (device_id=? AND chat_id=?",
		queued + `m.frame_left = 1 ORDER BY n LIMIT 65`: "INDEX message_repeat (device_id=?",
		`SELECT id FROM delivery d WHERE d.endpoint_id = 'e' AND d.status = 'pending'` + again + ` AND d.due_at <= 5
			ORDER BY d.due_at, d.n`: "INDEX delivery_again (endpoint_id=? AND due_at<?)",
		unsendable: "SEARCH message USING INDEX message_queue (device_id=?",
		withQueue:  "SEARCH message USING INDEX message_queue (device_id>?",
	} {
		if got := plan(t, db, query); !strings.Contains(got, want) {
			t.Errorf("the plan is %s\nwant %s", got, want)
		}
	}
}

// The figures on the dashboard are looked up in indexes, without scanning tables.
func TestFiguresAndTheNewestEventsAreLookedUpByIndexes(t *testing.T) {
	t.Parallel()
	db := engine{}.open(t)
	for query, want := range map[string]string{
		`SELECT hour - hour % 5, sum(sent) FROM message_hour WHERE workspace_id = 'w' AND hour >= 5
			GROUP BY 1`: "SEARCH message_hour USING PRIMARY KEY " +
			"(workspace_id=? AND hour>?)",
		`SELECT hour - hour % 5, sum(failed) FROM endpoint_hour WHERE endpoint_id IN (SELECT id FROM endpoint
			WHERE workspace_id = 'w') AND hour >= 5
			GROUP BY 1`: "SEARCH endpoint_hour USING PRIMARY KEY (endpoint_id=? AND hour>?)",
		`SELECT hour FROM message_hour WHERE hour < 5
			LIMIT 1`: "INDEX message_hour_age (hour<?)",
		`SELECT position FROM event WHERE workspace_id = 'w' AND position < 5 AND position > 1 ORDER BY position DESC
			LIMIT 9`: "USING COVERING INDEX event_workspace " +
			"(workspace_id=? AND position>? AND position<?)",
		`SELECT id FROM event WHERE workspace_id = 'w' AND position > 1 AND position <= 5
			AND ('x' = 'null' OR type IN ` + db.db.InList(1) + `) ORDER BY position DESC
				LIMIT 9`: "USING INDEX event_workspace (workspace_id=? AND position>? AND position<?)",
	} {
		if got := plan(t, db, strings.ReplaceAll(query, "$1", "'[]'")); !strings.Contains(got, want) ||
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
		membershipsOf:   "PRIMARY KEY (user_id=? AND workspace_id>?)",
		deviceHealth:    "INDEX event_health (device_id=? AND position<?)",
		keysOfWorkspace: "INDEX api_key_workspace (workspace_id=?)",
		identitiesOf:    "INDEX identity_user (user_id=?)",
		replaysOf:       "INDEX replay_endpoint (endpoint_id=?)",

		actsPlan(ActFilter{}):                       "INDEX audit_workspace (workspace_id=?)",
		actsPlan(ActFilter{Before: 5}):              "INDEX audit_workspace (workspace_id=? AND n<?)",
		actsPlan(ActFilter{Email: "a", Before: 5}):  "INDEX audit_user (workspace_id=? AND user_id=? AND n<?)",
		actsPlan(ActFilter{Kind: "key", Before: 5}): "INDEX audit_kind (workspace_id=? AND kind=? AND n<?)",
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
		messagesQueued:  "SCAN message USING INDEX message_expiry", // an index of the queue only
		messagesLeft:    "USING INDEX message_repeat (device_id>?)",
		deliveriesWait:  "USING COVERING INDEX delivery_due",
		deliveriesDue:   "USING COVERING INDEX delivery_due (endpoint_id=? AND due_at<?)",
		oldestDue:       "USING COVERING INDEX delivery_due (endpoint_id=?)",
		allMessageHours: "INDEX message_hour_age (hour>?)",
		allAttemptHours: "INDEX endpoint_hour_age (hour>?)",
		workspacesUsed:  "SEARCH w USING PRIMARY KEY (id>?)",
		persons:         "SEARCH u USING INDEX sqlite_autoindex_users_2 (email>?)",
	} {
		if got := plan(t, db, query); !strings.Contains(got, want) || strings.Contains(got, "TEMP B-TREE FOR ORDER") {
			t.Errorf("the plan is %s\nwant %s", got, want)
		}
	}
}
