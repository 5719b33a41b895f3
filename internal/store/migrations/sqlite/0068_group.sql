-- +goose Up
-- The groups that a device is in, or was in (left_at > 0). summary and participants are JSON. listed is 1 if the group
-- is known from a list only: no notice has said that the account joined it.
CREATE TABLE chat_group (
	device_id    TEXT NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	chat_id      TEXT NOT NULL,
	workspace_id TEXT NOT NULL,
	subject      TEXT NOT NULL,
	summary      TEXT NOT NULL,
	participants TEXT NOT NULL,
	left_at      INTEGER NOT NULL,
	listed       INTEGER NOT NULL,
	PRIMARY KEY (device_id, chat_id)
) STRICT, WITHOUT ROWID;
-- The account whose groups were listed once; after that, notices change them.
CREATE TABLE group_list (
	device_id TEXT NOT NULL PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
	account   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- Requests to the live session of a device. outcome is JSON; it is empty until the session has answered.
CREATE TABLE session_request (
	id           TEXT NOT NULL PRIMARY KEY,
	workspace_id TEXT NOT NULL,
	device_id    TEXT NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	kind         TEXT NOT NULL,
	input        BLOB NOT NULL,
	outcome      BLOB NOT NULL,
	expires_at   INTEGER NOT NULL,
	taken_at     INTEGER NOT NULL,
	method       TEXT NOT NULL,
	path         TEXT NOT NULL,
	key          TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_request_waiting ON session_request (device_id, expires_at) WHERE taken_at = 0;
CREATE INDEX session_request_age ON session_request (expires_at);
