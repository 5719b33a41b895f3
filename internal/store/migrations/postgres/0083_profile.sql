-- +goose Up
-- The file of an account's own picture as it was last read, and which picture of the network that is.
ALTER TABLE device ADD COLUMN picture_id TEXT NOT NULL DEFAULT '';
ALTER TABLE device ADD COLUMN picture_media TEXT NOT NULL DEFAULT '';
