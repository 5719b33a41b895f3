-- +goose Up
-- A small JPEG of a photo; empty if there is none, or if it was not made when the photo was stored.
ALTER TABLE blob ADD COLUMN thumbnail BYTEA NOT NULL DEFAULT '';
