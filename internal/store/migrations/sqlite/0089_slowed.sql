-- +goose Up
-- How many times the pace for new chats is halved, and when that changed last.
ALTER TABLE device ADD COLUMN slowed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE device ADD COLUMN slowed_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX device_slowed ON device (slowed_at) WHERE slowed > 0;
