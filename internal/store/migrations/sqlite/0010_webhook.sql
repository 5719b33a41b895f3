-- +goose Up
-- A new URL that has not been verified yet; the one before stays in use.
ALTER TABLE endpoint ADD COLUMN pending_url TEXT NOT NULL DEFAULT '';
CREATE INDEX endpoint_moving ON endpoint (due_at) WHERE pending_url <> '';

-- Secrets that a rotation replaced sign beside the new one for a time. With
-- the signature v1a an endpoint has an ed25519 key too.
ALTER TABLE endpoint ADD COLUMN old_secrets TEXT NOT NULL DEFAULT '[]';      -- JSON array, sealed, newest first
ALTER TABLE endpoint ADD COLUMN signatures TEXT NOT NULL DEFAULT '["v1"]';   -- JSON array
ALTER TABLE endpoint ADD COLUMN signing_key BLOB NOT NULL DEFAULT x'';       -- sealed; empty without v1a
ALTER TABLE endpoint ADD COLUMN public_key TEXT NOT NULL DEFAULT '';

-- A retry by hand opens a new round, with attempts and a window of its own.
ALTER TABLE delivery ADD COLUMN earlier INTEGER NOT NULL DEFAULT 0; -- attempts of the rounds before

-- A notice is not in the log of events: its delivery bears the bytes, at a
-- position below zero.
ALTER TABLE delivery ADD COLUMN notice BLOB; -- NULL: those of the event
CREATE INDEX delivery_notice ON delivery (workspace_id, created_at) WHERE position < 0;

-- A replay delivers a part of the log again, a chunk at a time.
CREATE TABLE replay (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    endpoint_id  TEXT NOT NULL,
    status       TEXT NOT NULL,
    since        INTEGER NOT NULL,
    until        INTEGER NOT NULL,
    types        TEXT NOT NULL, -- JSON array, or null for all
    only_failed  INTEGER NOT NULL,
    position     INTEGER NOT NULL, -- the log was read up to here
    last         INTEGER NOT NULL, -- and is read to here
    matched      INTEGER NOT NULL,
    delivered    INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX replay_endpoint ON replay (endpoint_id);
CREATE INDEX replay_workspace ON replay (workspace_id, ended_at);
ALTER TABLE delivery ADD COLUMN replay_id TEXT NOT NULL DEFAULT ''; -- that this round belongs to
CREATE INDEX delivery_replay ON delivery (replay_id) WHERE status = 'pending' AND replay_id <> '';

-- What is to be attempted again is found without a walk over what is new.
CREATE INDEX delivery_again ON delivery (endpoint_id, due_at, n) WHERE status = 'pending' AND (attempts > 0 OR replay_id <> '');
