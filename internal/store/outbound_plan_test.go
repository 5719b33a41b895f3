package store

import (
	"database/sql"
	"strings"
	"testing"
)

// What is known of a chat is looked up for each queued message: by an index that
// holds only what counts, or a long queue to one chat is read once for each of
// its own messages.
func TestKnownChatsAreFoundByTheirIndex(t *testing.T) {
	t.Parallel()
	db := engine{}.open(t)
	var plan []string
	err := db.rows(t.Context(), `EXPLAIN QUERY PLAN SELECT 1 FROM message m WHERE device_id = 'd' AND status IN ('queued', 'sending') AND `+hasMessages(), nil, func(r *sql.Rows) error {
		var id, parent, x int
		var detail string
		err := r.Scan(&id, &parent, &x, &detail)
		plan = append(plan, detail)
		return err
	})
	if err != nil || !strings.Contains(strings.Join(plan, "\n"), "USING INDEX message_known (device_id=? AND chat_id=?") {
		t.Errorf("the plan is %q (%v)", plan, err)
	}
}
