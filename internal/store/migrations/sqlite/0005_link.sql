-- +goose Up
-- The phone that a pairing code is entered on, and whether the network wants the
-- owner's passkey before it goes on.
ALTER TABLE link ADD COLUMN phone_number TEXT NOT NULL DEFAULT '';
ALTER TABLE link ADD COLUMN passkey INTEGER NOT NULL DEFAULT 0;
