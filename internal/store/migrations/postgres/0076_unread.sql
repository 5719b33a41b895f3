-- +goose Up
-- How many messages of each chat are unread: those that were received after the last one that was read, whose number
-- is read_to. Messages from before this release count as read. Kept by triggers, so that servers of the release before
-- count, too.
ALTER TABLE chat ADD COLUMN workspace_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE chat ADD COLUMN read_to BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chat ADD COLUMN unread BIGINT NOT NULL DEFAULT 0;
UPDATE chat SET read_to = newest,
    workspace_id = coalesce((SELECT d.workspace_id FROM device d WHERE d.id = chat.device_id), '');
CREATE INDEX chat_recent ON chat (workspace_id, newest);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION message_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chat (device_id, chat_id, workspace_id, newest, unread)
        SELECT device_id, chat_id, min(workspace_id), max(n),
            count(*) FILTER (WHERE direction = 'inbound' AND source = 'contact' AND type <> 'call')
        FROM fresh WHERE about = '' GROUP BY device_id, chat_id
        ON CONFLICT (device_id, chat_id) DO UPDATE SET newest = excluded.newest, unread = chat.unread + excluded.unread;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION message_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE chat c SET unread = greatest(0, c.unread - lost.n) FROM (
            SELECT g.device_id, g.chat_id, count(*) AS n FROM gone g
            JOIN chat o ON o.device_id = g.device_id AND o.chat_id = g.chat_id AND o.read_to < g.n
            WHERE g.direction = 'inbound' AND g.source = 'contact' AND g.about = '' AND g.type <> 'call'
            GROUP BY g.device_id, g.chat_id
        ) lost WHERE c.device_id = lost.device_id AND c.chat_id = lost.chat_id;
    DELETE FROM chat c USING gone g WHERE c.device_id = g.device_id AND c.chat_id = g.chat_id AND c.newest = g.n;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- What the account has set for a chat, on its phone or here. It outlives the messages of the chat.
CREATE TABLE chat_setting (
    device_id   TEXT COLLATE "C" NOT NULL,
    chat_id     TEXT COLLATE "C" NOT NULL,
    archived    BIGINT NOT NULL DEFAULT 0, -- 1 or 0
    muted_until BIGINT NOT NULL DEFAULT 0, -- 0: not muted; -1: for ever
    PRIMARY KEY (device_id, chat_id)
);
