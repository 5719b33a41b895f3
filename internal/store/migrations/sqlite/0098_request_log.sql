-- +goose Up
-- The API requests of the last day, many in a row: see package apilog.
CREATE TABLE request_log (
    n            INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace_id TEXT    NOT NULL,
    ended_at     INTEGER NOT NULL,
    body         BLOB    NOT NULL
) STRICT;
CREATE INDEX request_log_workspace ON request_log (workspace_id, n);
CREATE INDEX request_log_age ON request_log (ended_at);
