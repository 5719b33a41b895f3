-- +goose Up
-- 1 for a message that the phone had before the account was linked.
ALTER TABLE message ADD COLUMN history BIGINT NOT NULL DEFAULT 0;
-- The parts of phones' histories that are still to be read. part is encrypted: it says where the part is.
CREATE TABLE history_part (
	device_id    TEXT COLLATE "C" NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	network_id   TEXT COLLATE "C" NOT NULL,
	workspace_id TEXT COLLATE "C" NOT NULL,
	account      TEXT COLLATE "C" NOT NULL,
	extent       TEXT COLLATE "C" NOT NULL,
	part         BYTEA NOT NULL,
	attempts     BIGINT NOT NULL,
	next_at      BIGINT NOT NULL,
	PRIMARY KEY (device_id, network_id)
);

-- A message of the history counts as read, and is the newest one of its chat only if it is newer than the one that was.
-- Status posts count as read, too.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION message_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chat (device_id, chat_id, workspace_id, newest, unread)
        SELECT device_id, chat_id, min(workspace_id), max(n), count(*) FILTER (WHERE direction = 'inbound'
            AND source = 'contact' AND type <> 'call' AND chat_id <> 'status')
        FROM fresh WHERE about = '' AND history = 0 GROUP BY device_id, chat_id
        ON CONFLICT (device_id, chat_id) DO UPDATE SET newest = excluded.newest, unread = chat.unread + excluded.unread;
    IF EXISTS (SELECT 1 FROM fresh WHERE history = 1) THEN
        INSERT INTO chat (device_id, chat_id, workspace_id, newest, unread)
            SELECT device_id, chat_id, min(workspace_id), max(n), 0 FROM fresh
            WHERE about = '' AND history = 1 GROUP BY device_id, chat_id
            ON CONFLICT (device_id, chat_id) DO UPDATE SET newest = excluded.newest
            WHERE (SELECT m.created_at FROM message m WHERE m.n = excluded.newest) >
                coalesce((SELECT m.created_at FROM message m WHERE m.n = chat.newest), 0);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION message_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE chat c SET unread = greatest(0, c.unread - lost.n) FROM (
            SELECT g.device_id, g.chat_id, count(*) AS n FROM gone g
            JOIN chat o ON o.device_id = g.device_id AND o.chat_id = g.chat_id AND o.read_to < g.n
            WHERE g.direction = 'inbound' AND g.source = 'contact' AND g.about = '' AND g.type <> 'call'
                AND g.history = 0 AND g.chat_id <> 'status'
            GROUP BY g.device_id, g.chat_id
        ) lost WHERE c.device_id = lost.device_id AND c.chat_id = lost.chat_id;
    DELETE FROM chat c USING gone g WHERE c.device_id = g.device_id AND c.chat_id = g.chat_id AND c.newest = g.n;
    RETURN NULL;
END $$;
-- +goose StatementEnd
