-- +goose Up
-- How many attempts of a delivery were made early, because an outage of its endpoint had ended, and
-- the time before which its receiver asked not to be tried again (Retry-After).
ALTER TABLE delivery ADD COLUMN hastened INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delivery ADD COLUMN not_before INTEGER NOT NULL DEFAULT 0;

-- What waits for another attempt, oldest first.
CREATE INDEX delivery_waits ON delivery (endpoint_id, n) WHERE status = 'pending' AND (attempts > 0 OR replay_id <> '');
