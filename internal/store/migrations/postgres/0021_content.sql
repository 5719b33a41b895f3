-- +goose Up
-- The members of a message's content beside its text, as JSON; '' when there are none.
ALTER TABLE message ADD COLUMN extra TEXT NOT NULL DEFAULT '';
