-- +goose Up
-- What the network driver keeps of an account: its keys and ratchets, one row each.
CREATE TABLE session_key (
    account TEXT NOT NULL,    -- the driver's name for the link
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,    -- ASCII
    at      INTEGER NOT NULL, -- what the driver wants to count or sweep by; 0 for none
    value   BLOB NOT NULL,    -- sealed by the driver
    PRIMARY KEY (account, kind, name)
) STRICT, WITHOUT ROWID;
