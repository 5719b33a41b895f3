-- +goose Up
-- Files to send that are not fetched yet, of each workspace by their turn; and those of received messages, of each device.
CREATE INDEX media_to_send ON media (workspace_id, next_at, id) WHERE status = 'pending' AND message_id = '';
CREATE INDEX media_received ON media (device_id, next_at) WHERE status = 'pending' AND message_id <> '';
