-- +goose Up
-- Messages up to this one (message.n) belong to numbers that the device had before.
ALTER TABLE device ADD COLUMN history_from BIGINT NOT NULL DEFAULT 0;
