-- +goose Up
-- A new URL that has not been verified yet; the one before stays in use.
ALTER TABLE endpoint ADD COLUMN pending_url TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX endpoint_moving ON endpoint (due_at) WHERE pending_url <> '';

-- Secrets that a rotation replaced sign beside the new one for a time. With
-- the signature v1a an endpoint has an ed25519 key too.
ALTER TABLE endpoint ADD COLUMN old_secrets TEXT COLLATE "C" NOT NULL DEFAULT '[]';      -- JSON array, sealed, newest first
ALTER TABLE endpoint ADD COLUMN signatures TEXT COLLATE "C" NOT NULL DEFAULT '["v1"]';   -- JSON array
ALTER TABLE endpoint ADD COLUMN signing_key BYTEA NOT NULL DEFAULT '';       -- sealed; empty without v1a
ALTER TABLE endpoint ADD COLUMN public_key TEXT COLLATE "C" NOT NULL DEFAULT '';

-- A retry by hand opens a new round, with attempts and a window of its own.
ALTER TABLE delivery ADD COLUMN earlier BIGINT NOT NULL DEFAULT 0; -- attempts of the rounds before

-- A notice is not in the log of events: its delivery bears the bytes, at a
-- position below zero.
ALTER TABLE delivery ADD COLUMN notice BYTEA; -- NULL: those of the event
