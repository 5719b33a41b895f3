-- +goose Up
-- Whether a chat is known, and what is to be sent again, must be found without
-- reading a long queue.
CREATE INDEX message_known ON message (device_id, chat_id, n) WHERE frame_left = 1 OR status IN ('received', 'sent', 'delivered', 'read');
CREATE INDEX message_repeat ON message (device_id, n) WHERE frame_left = 1 AND status IN ('queued', 'sending');
