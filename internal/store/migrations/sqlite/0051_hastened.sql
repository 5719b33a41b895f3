-- +goose Up
-- How many attempts of a delivery were made early, because an outage of its endpoint had ended.
ALTER TABLE delivery ADD COLUMN hastened INTEGER NOT NULL DEFAULT 0;
