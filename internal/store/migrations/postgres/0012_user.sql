-- +goose Up
-- People who sign in to the dashboard. ("user" is a word of SQL's own.)
CREATE TABLE users (
    id            TEXT PRIMARY KEY,
    email         TEXT NOT NULL UNIQUE, -- in lower case
    password_hash TEXT NOT NULL,        -- argon2id with its parameters
    created_at    BIGINT NOT NULL
);

CREATE TABLE member (
    user_id      TEXT NOT NULL REFERENCES users (id),
    workspace_id TEXT NOT NULL REFERENCES workspace (id),
    role         TEXT NOT NULL,
    joined_at    BIGINT NOT NULL,
    PRIMARY KEY (user_id, workspace_id)
);
CREATE INDEX member_workspace ON member (workspace_id, user_id);

-- Browsers that are signed in. The token is kept as its hash.
CREATE TABLE sign_in (
    token_hash TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL,        -- empty before somebody has signed in
    data       BYTEA NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sign_in_user ON sign_in (user_id, expires_at);
CREATE INDEX sign_in_age ON sign_in (expires_at);

-- Every privileged act: who did what to what, and from where.
CREATE TABLE audit (
    n            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           BIGINT NOT NULL,
    workspace_id TEXT NOT NULL, -- empty for what belongs to none
    user_id      TEXT NOT NULL, -- empty for the operator
    act          TEXT NOT NULL, -- such as key.created
    subject      TEXT NOT NULL, -- the id of what it was done to
    address      TEXT NOT NULL  -- the browser's
);
CREATE INDEX audit_workspace ON audit (workspace_id, n);
