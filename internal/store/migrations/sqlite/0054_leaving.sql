-- +goose Up
-- A server that stops is no longer counted among those that share out the devices.
ALTER TABLE node ADD COLUMN leaving INTEGER NOT NULL DEFAULT 0;
