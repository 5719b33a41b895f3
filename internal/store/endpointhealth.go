package store

import (
	"postern/internal/db"
	"postern/internal/postern"
)

// endpointHealth keeps, for each endpoint, since when and how often it has been failing.
// Rows are written only when they change.
type endpointHealth struct {
	well [][]any // endpoints that succeeded and are not written yet
}

// wellKey is the key under which a transaction remembers an endpoint that is well.
type wellKey postern.EndpointID

var markWell = db.NewStatement("endpoint",
	`UPDATE endpoint SET failing_since = 0, failures = 0 [FROM @rows] WHERE id = @endpoint AND failures > 0`)

// record takes the outcome of an attempt. Successes are written together, by flush or
// before the next failure.
func (h *endpointHealth) record(t *db.Tx, o *Attempt) error {
	if o.Reason == "" {
		if t.First(wellKey(o.EndpointID)) {
			h.well = append(h.well, []any{o.EndpointID})
		}
		return nil
	}
	if err := h.flush(t); err != nil {
		return err
	}
	t.Forget(wellKey(o.EndpointID))
	return o.countFailure(t)
}

// flush writes the successes.
func (h *endpointHealth) flush(t *db.Tx) error {
	_, err := t.Each(markWell, h.well)
	h.well = nil
	return err
}

// countFailure counts a failure of the endpoint, and disables the endpoint if it has failed
// for long enough or has asked for no more.
func (o *Attempt) countFailure(t *db.Tx) error {
	err := t.Exec(`UPDATE endpoint SET failing_since = CASE WHEN failures = 0 THEN $2 ELSE failing_since END, failures = failures + 1
		WHERE id = $1`, o.EndpointID, o.At)
	if err != nil {
		return err
	}
	n, err := t.Changed(`UPDATE endpoint SET status = 'disabled', status_reason = CASE WHEN $2 = '' THEN 'failing' ELSE $2 END,
			since = (SELECT coalesce(max(position), 0) FROM event)
		WHERE id = $1 AND status = 'active' AND ($2 <> '' AND ($5 = '' OR url = $5) OR failures >= $3 AND failing_since <= $4)`,
		o.EndpointID, o.Disable, disableFailures, o.Ended.Add(-disableAfter), o.URL)
	if err != nil || n == 0 {
		return err
	}
	t.Wake(EndpointChanged, string(o.EndpointID))
	return recordDisabled(t, o.EndpointID, o.Ended)
}
