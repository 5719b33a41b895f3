-- +goose Up
-- What users prove beside a password.
CREATE TABLE totp (
    user_id      TEXT PRIMARY KEY REFERENCES users (id),
    secret       BLOB NOT NULL,               -- sealed
    confirmed_at INTEGER NOT NULL DEFAULT 0, -- 0 until a code of it was typed
    used         INTEGER NOT NULL DEFAULT 0  -- the step of time of the last code: none before it opens anything
) STRICT, WITHOUT ROWID;

CREATE TABLE passkey (
    id         TEXT PRIMARY KEY,       -- the credential's, in base64url
    user_id    TEXT NOT NULL REFERENCES users (id),
    name       TEXT NOT NULL,
    kept       BLOB NOT NULL,          -- the credential, sealed
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX passkey_user ON passkey (user_id, id);

-- Codes that each open the account once, as keyed hashes.
CREATE TABLE recovery_code (
    user_id TEXT NOT NULL REFERENCES users (id),
    hash    TEXT NOT NULL,
    PRIMARY KEY (user_id, hash)
) STRICT, WITHOUT ROWID;
