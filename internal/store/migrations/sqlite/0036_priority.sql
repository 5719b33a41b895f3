-- +goose Up
-- The priority that the sender asked for: high, low, or '' for normal.
ALTER TABLE message ADD COLUMN priority TEXT NOT NULL DEFAULT '';
-- The lane of the queue in which a message waits: 0 high, 1 normal, 2 low. All messages of a chat
-- that wait are in one lane, the best that one of them asked for, so that they keep their order.
ALTER TABLE message ADD COLUMN lane INTEGER NOT NULL DEFAULT 1;
DROP INDEX message_queue;
CREATE INDEX message_queue ON message (device_id, lane, n, status) WHERE status IN ('queued', 'sending');
CREATE INDEX message_waiting ON message (chat_id, device_id) WHERE status IN ('queued', 'sending');
