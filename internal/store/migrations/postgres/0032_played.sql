-- +goose Up
-- When the recipient played a voice message or a video, by the network's clock; 0 if not.
ALTER TABLE message ADD COLUMN played_at BIGINT NOT NULL DEFAULT 0;
