-- +goose Up
-- 1 for a message that the phone had before the account was linked.
ALTER TABLE message ADD COLUMN history INTEGER NOT NULL DEFAULT 0;
-- The parts of phones' histories that are still to be read. part is encrypted: it says where the part is.
CREATE TABLE history_part (
	device_id    TEXT NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	network_id   TEXT NOT NULL,
	workspace_id TEXT NOT NULL,
	account      TEXT NOT NULL,
	extent       TEXT NOT NULL,
	part         BLOB NOT NULL,
	attempts     INTEGER NOT NULL,
	next_at      INTEGER NOT NULL,
	PRIMARY KEY (device_id, network_id)
) STRICT, WITHOUT ROWID;

-- Messages of the history and status posts count as read.
DROP TRIGGER message_unread_removed;
-- +goose StatementBegin
CREATE TRIGGER message_unread_removed AFTER DELETE ON message
    WHEN old.direction = 'inbound' AND old.source = 'contact' AND old.about = '' AND old.type <> 'call'
        AND old.history = 0 AND old.chat_id <> 'status' BEGIN
    UPDATE chat SET unread = unread - 1
        WHERE device_id = old.device_id AND chat_id = old.chat_id AND read_to < old.n AND newest >= old.n AND unread > 0;
END;
-- +goose StatementEnd
