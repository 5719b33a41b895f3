-- +goose Up
-- The secret keys with which values of this database are encrypted, or were.
CREATE TABLE secret_key (
    id         TEXT COLLATE "C" PRIMARY KEY,
    state      TEXT COLLATE "C" NOT NULL, -- encrypts, retiring while values may be encrypted with it, or retired
    since      BIGINT NOT NULL, -- when it began to encrypt
    retired_at BIGINT NOT NULL DEFAULT 0,
    resealed   BIGINT NOT NULL DEFAULT 0, -- values of earlier keys that were encrypted again with it
    keepsake   BYTEA NOT NULL DEFAULT '' -- sealed: its key for the hashes of recovery codes, once it is replaced
);

-- The secret keys that a server knows: its term, the key with which it encrypts, and the others.
ALTER TABLE node ADD COLUMN secret_keys TEXT COLLATE "C" NOT NULL DEFAULT '';
