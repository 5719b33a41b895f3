-- +goose Up
-- Each chat of a device with its newest message, so that a list of chats, the newest
-- first, costs what it shows. The writer notes the chats of a group's messages: a
-- trigger of SQLite runs for each row, and cost 45 us of CPU a message. What removes
-- messages, a trigger follows.
-- With its newest message a chat goes, also when an older one still waits to be sent;
-- its next message brings it back.
CREATE TABLE chat (
    device_id TEXT NOT NULL,
    chat_id   TEXT NOT NULL,
    newest    INTEGER NOT NULL, -- message.n
    PRIMARY KEY (device_id, chat_id)
) STRICT, WITHOUT ROWID;
INSERT INTO chat (device_id, chat_id, newest) SELECT device_id, chat_id, max(n) FROM message GROUP BY device_id, chat_id;
CREATE INDEX chat_newest ON chat (device_id, newest);

-- +goose StatementBegin
CREATE TRIGGER message_removed AFTER DELETE ON message BEGIN
    DELETE FROM chat WHERE device_id = old.device_id AND chat_id = old.chat_id AND newest = old.n;
END;
-- +goose StatementEnd

-- A conversation is read through this, and what is looked for by a number.
CREATE INDEX message_talk ON message (device_id, chat_id, n);
-- Few fail, and those are looked for among the many that did not.
CREATE INDEX message_failed ON message (workspace_id, n) WHERE status IN ('failed', 'expired');
