-- +goose Up
-- After how many seconds the messages of a chat disappear on the phones, and since when; 0 for never.
CREATE TABLE chat_timer (
	device_id TEXT NOT NULL,
	chat_id TEXT NOT NULL,
	seconds INTEGER NOT NULL,
	set_at INTEGER NOT NULL,
	PRIMARY KEY (device_id, chat_id)
);
