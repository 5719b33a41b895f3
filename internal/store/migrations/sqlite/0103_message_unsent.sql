-- +goose Up
-- The queue of a device, with what tells messages from actions.
CREATE INDEX message_unsent ON message (device_id, lane, n, status, about) WHERE status IN ('queued', 'sending');
