-- +goose Up
-- Each chat of a device with its newest message, so that a list of chats, the newest
-- first, costs what it shows. Kept by triggers: whichever statement adds or removes
-- messages, what is here follows. With its newest message a chat goes, also when an
-- older one still waits to be sent; its next message brings it back.
CREATE TABLE chat (
    device_id TEXT COLLATE "C" NOT NULL,
    chat_id   TEXT COLLATE "C" NOT NULL,
    newest    BIGINT NOT NULL, -- message.n
    PRIMARY KEY (device_id, chat_id)
);
INSERT INTO chat (device_id, chat_id, newest) SELECT device_id, chat_id, max(n) FROM message GROUP BY device_id, chat_id;
CREATE INDEX chat_newest ON chat (device_id, newest);

-- +goose StatementBegin
CREATE FUNCTION message_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chat (device_id, chat_id, newest) SELECT device_id, chat_id, max(n) FROM fresh GROUP BY device_id, chat_id
        ON CONFLICT (device_id, chat_id) DO UPDATE SET newest = excluded.newest;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER message_added AFTER INSERT ON message REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION message_added();
-- +goose StatementBegin
CREATE FUNCTION message_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM chat c USING gone g WHERE c.device_id = g.device_id AND c.chat_id = g.chat_id AND c.newest = g.n;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER message_removed AFTER DELETE ON message REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION message_removed();

-- A conversation is read through this, and what is looked for by a number.
CREATE INDEX message_talk ON message (device_id, chat_id, n);
-- Few fail, and those are looked for among the many that did not.
CREATE INDEX message_failed ON message (workspace_id, n) WHERE status IN ('failed', 'expired');
