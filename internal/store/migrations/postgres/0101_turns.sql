-- +goose Up
-- Files to send that are not fetched yet, of each workspace by their turn; and those of received messages, of each device.
CREATE INDEX media_to_send ON media (workspace_id, next_at, id) WHERE status = 'pending' AND message_id = '';
CREATE INDEX media_received ON media (device_id, next_at) WHERE status = 'pending' AND message_id <> '';
DROP INDEX media_fetching;
DROP INDEX media_waiting;
-- Deliveries that hold up others of their chat, by the time at which they stop.
CREATE INDEX delivery_line ON delivery (endpoint_id, first_attempt_at)
	WHERE status = 'pending' AND chat <> '' AND first_attempt_at > 0;
-- The queue of a device, with what tells messages from actions.
DROP INDEX message_queue;
CREATE INDEX message_queue ON message (device_id, lane, n, status, about) WHERE status IN ('queued', 'sending');
