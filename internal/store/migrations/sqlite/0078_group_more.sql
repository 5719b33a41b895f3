-- +goose Up
-- The file of a group's picture as it was last read, and which picture of the network that is.
ALTER TABLE chat_group ADD COLUMN picture_id TEXT NOT NULL DEFAULT '';
ALTER TABLE chat_group ADD COLUMN picture_media TEXT NOT NULL DEFAULT '';
-- How many recipients of a message to a group have not confirmed its next status. 0: they are to be counted.
CREATE TABLE receipt_left (
	message_id TEXT NOT NULL PRIMARY KEY REFERENCES message (id) ON DELETE CASCADE,
	receipts   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
