-- +goose Up
-- How many messages of each chat are unread: those that were received after the last one that was read, whose number
-- is read_to. Messages from before this release count as read. What removes messages, a trigger follows.
ALTER TABLE chat ADD COLUMN workspace_id TEXT NOT NULL DEFAULT '';
ALTER TABLE chat ADD COLUMN read_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chat ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;
UPDATE chat SET read_to = newest,
    workspace_id = coalesce((SELECT d.workspace_id FROM device d WHERE d.id = chat.device_id), '');
CREATE INDEX chat_recent ON chat (workspace_id, newest);

-- +goose StatementBegin
CREATE TRIGGER message_unread_removed AFTER DELETE ON message
    WHEN old.direction = 'inbound' AND old.source = 'contact' AND old.about = '' AND old.type <> 'call' BEGIN
    UPDATE chat SET unread = unread - 1
        WHERE device_id = old.device_id AND chat_id = old.chat_id AND read_to < old.n AND newest >= old.n AND unread > 0;
END;
-- +goose StatementEnd

-- What the account has set for a chat, on its phone or here. It outlives the messages of the chat.
CREATE TABLE chat_setting (
    device_id   TEXT NOT NULL,
    chat_id     TEXT NOT NULL,
    archived    INTEGER NOT NULL DEFAULT 0, -- 1 or 0
    muted_until INTEGER NOT NULL DEFAULT 0, -- 0: not muted; -1: for ever
    PRIMARY KEY (device_id, chat_id)
) STRICT, WITHOUT ROWID;
