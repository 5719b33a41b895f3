-- +goose Up
-- Links by which people join a workspace. The token is kept as its hash. An
-- invitation is open while it was neither used nor revoked and has not expired.
CREATE TABLE invitation (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspace (id),
    email        TEXT NOT NULL, -- in lower case; nobody else can use it
    role         TEXT NOT NULL,
    token_hash   TEXT NOT NULL UNIQUE,
    invited_by   TEXT NOT NULL, -- the user
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    used_at      INTEGER NOT NULL DEFAULT 0,
    revoked_at   INTEGER NOT NULL DEFAULT 0 -- also when its inviter lost the right to it
) STRICT, WITHOUT ROWID;
CREATE INDEX invitation_open ON invitation (workspace_id, email) WHERE used_at = 0 AND revoked_at = 0;

-- The newest link by which a user may choose a password; gone once it was used.
CREATE TABLE password_link (
    user_id    TEXT PRIMARY KEY REFERENCES users (id),
    token_hash TEXT NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
