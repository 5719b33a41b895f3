-- +goose Up
-- An act on a webhook may be an API key's. Keys stay when they are revoked, so that the
-- key's name can be looked up when the log is read.
ALTER TABLE audit ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
