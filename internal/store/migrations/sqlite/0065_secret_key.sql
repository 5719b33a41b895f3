-- +goose Up
-- The secret keys with which values of this database are encrypted, or were.
CREATE TABLE secret_key (
    id         TEXT PRIMARY KEY,
    state      TEXT NOT NULL,    -- encrypts, retiring while values may be encrypted with it, or retired
    since      INTEGER NOT NULL, -- when it began to encrypt
    retired_at INTEGER NOT NULL DEFAULT 0,
    resealed   INTEGER NOT NULL DEFAULT 0, -- values of earlier keys that were encrypted again with it
    keepsake   BLOB NOT NULL DEFAULT x''  -- sealed: its key for the hashes of recovery codes, once it is replaced
) STRICT, WITHOUT ROWID;

-- The secret keys that a server knows: its term, the key with which it encrypts, and the others.
ALTER TABLE node ADD COLUMN secret_keys TEXT NOT NULL DEFAULT '';
