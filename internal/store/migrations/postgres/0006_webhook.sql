-- +goose Up
-- A new URL that has not been verified yet; the one before stays in use.
ALTER TABLE endpoint ADD COLUMN pending_url TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX endpoint_moving ON endpoint (due_at) WHERE pending_url <> '';
