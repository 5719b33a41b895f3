-- +goose Up
-- Deliveries that hold up others of their chat, by the time at which they stop.
CREATE INDEX delivery_line ON delivery (endpoint_id, first_attempt_at)
	WHERE status = 'pending' AND chat <> '' AND first_attempt_at > 0;
