-- +goose Up
-- How many others of a group got a message; 0 in a direct chat, and before it was sent.
ALTER TABLE message ADD COLUMN recipients BIGINT NOT NULL DEFAULT 0;
-- What a member of a group has confirmed of a message; a time of 0 is none. member is "lid:" and digits, or a number.
CREATE TABLE receipt (
	message_id   TEXT COLLATE "C" NOT NULL REFERENCES message (id) ON DELETE CASCADE,
	member       TEXT COLLATE "C" NOT NULL,
	number       TEXT COLLATE "C" NOT NULL,
	delivered_at BIGINT NOT NULL,
	read_at      BIGINT NOT NULL,
	played_at    BIGINT NOT NULL,
	PRIMARY KEY (message_id, member)
);
