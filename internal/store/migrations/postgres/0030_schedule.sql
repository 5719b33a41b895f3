-- +goose Up
-- When a scheduled message is to be sent; 0 for all others.
ALTER TABLE message ADD COLUMN send_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX message_scheduled ON message (send_at) WHERE status = 'scheduled';
