-- +goose Up
-- What the network driver keeps of an account: its keys and ratchets, one row each.
CREATE TABLE session_key (
    account TEXT COLLATE "C" NOT NULL, -- the driver's name for the link
    kind    TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL, -- ASCII, in the order of its bytes
    at      BIGINT NOT NULL,           -- what the driver wants to count or sweep by; 0 for none
    value   BYTEA NOT NULL,            -- sealed by the driver
    PRIMARY KEY (account, kind, name)
);
