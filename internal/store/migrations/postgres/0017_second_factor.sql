-- +goose Up
-- What users prove beside a password.
CREATE TABLE totp (
    user_id      TEXT PRIMARY KEY REFERENCES users (id),
    secret       BYTEA NOT NULL,               -- sealed
    confirmed_at BIGINT NOT NULL DEFAULT 0, -- 0 until a code of it was typed
    used         BIGINT NOT NULL DEFAULT 0  -- the step of time of the last code: none before it opens anything
);

CREATE TABLE passkey (
    id         TEXT PRIMARY KEY,       -- the credential's, in base64url
    user_id    TEXT NOT NULL REFERENCES users (id),
    name       TEXT NOT NULL,
    kept       BYTEA NOT NULL,          -- the credential, sealed
    created_at BIGINT NOT NULL,
    used_at    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX passkey_user ON passkey (user_id, id);

-- Codes that each open the account once, as keyed hashes.
CREATE TABLE recovery_code (
    user_id TEXT NOT NULL REFERENCES users (id),
    hash    TEXT NOT NULL,
    PRIMARY KEY (user_id, hash)
);
