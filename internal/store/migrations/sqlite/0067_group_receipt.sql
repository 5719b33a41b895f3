-- +goose Up
-- How many others of a group got a message; 0 in a direct chat, and before it was sent.
ALTER TABLE message ADD COLUMN recipients INTEGER NOT NULL DEFAULT 0;
-- What a member of a group has confirmed of a message; a time of 0 is none. member is "lid:" and digits, or a number.
CREATE TABLE receipt (
	message_id   TEXT NOT NULL REFERENCES message (id) ON DELETE CASCADE,
	member       TEXT NOT NULL,
	number       TEXT NOT NULL,
	delivered_at INTEGER NOT NULL,
	read_at      INTEGER NOT NULL,
	played_at    INTEGER NOT NULL,
	PRIMARY KEY (message_id, member)
) STRICT, WITHOUT ROWID;
