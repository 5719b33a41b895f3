-- +goose Up
-- Since when the account may not start chats, 0 if it may, and until when; 0 if that is not known.
ALTER TABLE device ADD COLUMN limited_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE device ADD COLUMN limited_until INTEGER NOT NULL DEFAULT 0;
CREATE INDEX device_limited ON device (limited_at) WHERE limited_at > 0;
