-- +goose Up
-- The labels of the account of each device, and the chats that have them. An account that is linked anew is read again.
CREATE TABLE label (
    device_id TEXT NOT NULL,
    label_id  TEXT NOT NULL, -- chosen by who has made the label
    name      TEXT NOT NULL,
    color     INTEGER NOT NULL,
    rest      TEXT NOT NULL DEFAULT '', -- what else the network says of it, as the driver writes it
    PRIMARY KEY (device_id, label_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE chat_label (
    device_id TEXT NOT NULL,
    chat_id   TEXT NOT NULL,
    label_id  TEXT NOT NULL, -- there may be no such label
    PRIMARY KEY (device_id, chat_id, label_id)
) STRICT, WITHOUT ROWID;
