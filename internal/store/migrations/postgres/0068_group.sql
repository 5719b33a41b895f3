-- +goose Up
-- The groups that a device is in, or was in (left_at > 0). summary and participants are JSON. listed is 1 if the group
-- is known from a list only: no notice has said that the account joined it.
CREATE TABLE chat_group (
	device_id    TEXT COLLATE "C" NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	chat_id      TEXT COLLATE "C" NOT NULL,
	workspace_id TEXT COLLATE "C" NOT NULL,
	subject      TEXT COLLATE "C" NOT NULL,
	summary      TEXT COLLATE "C" NOT NULL,
	participants TEXT COLLATE "C" NOT NULL,
	left_at      BIGINT NOT NULL,
	listed       BIGINT NOT NULL,
	PRIMARY KEY (device_id, chat_id)
);
-- The account whose groups were listed once; after that, notices change them.
CREATE TABLE group_list (
	device_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
	account   TEXT COLLATE "C" NOT NULL
);
-- Requests to the live session of a device. outcome is JSON; it is empty until the session has answered.
CREATE TABLE session_request (
	id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	workspace_id TEXT COLLATE "C" NOT NULL,
	device_id    TEXT COLLATE "C" NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	kind         TEXT COLLATE "C" NOT NULL,
	input        BYTEA NOT NULL,
	outcome      BYTEA NOT NULL,
	expires_at   BIGINT NOT NULL,
	taken_at     BIGINT NOT NULL,
	method       TEXT COLLATE "C" NOT NULL,
	path         TEXT COLLATE "C" NOT NULL,
	key          TEXT COLLATE "C" NOT NULL
);
CREATE INDEX session_request_waiting ON session_request (device_id, expires_at) WHERE taken_at = 0;
CREATE INDEX session_request_age ON session_request (expires_at);
