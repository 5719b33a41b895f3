-- +goose Up
-- Since when a device that should be connected is not; 0 if it is connected, or need not be.
ALTER TABLE device ADD COLUMN down_at BIGINT NOT NULL DEFAULT 0;
UPDATE device SET down_at = CASE WHEN last_seen_at > 0 THEN last_seen_at ELSE linked_at END
    WHERE status IN ('connecting', 'disconnected', 'restricted', 'conflict', 'logged_out', 'banned');
