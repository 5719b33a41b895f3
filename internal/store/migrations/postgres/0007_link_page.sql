-- +goose Up
-- The page on which a link attempt is shown to whoever holds the phone. Both
-- secrets are stored as SHA-256; the browser's is empty until one has the page.
CREATE TABLE link_page (
    link_id      TEXT COLLATE "C" PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL,
    device_id    TEXT COLLATE "C" NOT NULL,
    token_hash   BYTEA NOT NULL UNIQUE,
    browser_hash BYTEA NOT NULL,
    expires_at   BIGINT NOT NULL
);
