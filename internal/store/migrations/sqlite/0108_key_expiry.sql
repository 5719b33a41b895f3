-- +goose Up
-- A rotation shortens expires_at; what was chosen for the key is kept for its successor. -1: expires_at was not shortened.
ALTER TABLE api_key ADD COLUMN chosen_expires_at INTEGER NOT NULL DEFAULT -1;
