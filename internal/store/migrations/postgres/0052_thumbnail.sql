-- +goose Up
-- A small JPEG of a picture to send; empty if there is none, or if it was not made when the picture was stored.
ALTER TABLE media ADD COLUMN thumbnail BYTEA NOT NULL DEFAULT '';
