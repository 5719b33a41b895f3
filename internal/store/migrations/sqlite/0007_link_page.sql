-- +goose Up
-- The page on which a link attempt is shown to whoever holds the phone. Both
-- secrets are stored as SHA-256; the browser's is empty until one has the page.
CREATE TABLE link_page (
    link_id      TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    device_id    TEXT NOT NULL,
    token_hash   BLOB NOT NULL UNIQUE,
    browser_hash BLOB NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
