-- +goose Up
-- The picture of the preview that a text shows of its link, empty if the preview has none; NULL
-- until the link was looked up. The rest of the preview is in extra.
ALTER TABLE message ADD COLUMN preview BYTEA;
