-- +goose Up
-- Until when the account has read a chat elsewhere. What was sent before that and arrives later is read, too.
ALTER TABLE chat_setting ADD COLUMN read_until BIGINT NOT NULL DEFAULT 0;
