-- +goose Up
-- When the network made the newest notice about the group that was applied; 0 for none.
ALTER TABLE chat_group ADD COLUMN noticed_at INTEGER NOT NULL DEFAULT 0;
