-- +goose Up
-- Channels as the accounts of devices know them: their names, which posts do not contain, and what the account is in them.
CREATE TABLE channel (
    device_id TEXT NOT NULL REFERENCES device (id) ON DELETE CASCADE,
    chat_id   TEXT NOT NULL,
    name      TEXT NOT NULL,
    role      TEXT NOT NULL, -- guest, follower, admin or owner
    PRIMARY KEY (device_id, chat_id)
) STRICT, WITHOUT ROWID;
