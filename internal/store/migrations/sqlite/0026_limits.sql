-- +goose Up
-- Codes of an app that were tried on a UTC day, without those that were right.
ALTER TABLE totp ADD COLUMN guess_day INTEGER NOT NULL DEFAULT 0; -- when the day began
ALTER TABLE totp ADD COLUMN guesses   INTEGER NOT NULL DEFAULT 0;

-- The member who created the key; empty for the operator and for keys whose creator is unknown.
ALTER TABLE api_key ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
UPDATE api_key SET created_by = coalesce((SELECT a.user_id FROM audit a WHERE a.workspace_id = api_key.workspace_id
    AND a.act = 'key.created' AND a.subject = api_key.id LIMIT 1), '');
