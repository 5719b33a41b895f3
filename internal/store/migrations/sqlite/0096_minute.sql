-- +goose Up
-- Attempts by how long they took: columns took_0 and so on count those of each class of postern.Took.
ALTER TABLE endpoint_hour ADD COLUMN took_0 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_1 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_2 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_3 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_4 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_5 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_6 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_7 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_8 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_9 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_10 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_11 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_12 INTEGER NOT NULL DEFAULT 0;

-- The same counts as in endpoint_hour by the minute, kept for a day.
CREATE TABLE endpoint_minute (
    endpoint_id TEXT NOT NULL,
    minute      INTEGER NOT NULL, -- its start
    succeeded   INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    exhausted   INTEGER NOT NULL,
    duration    INTEGER NOT NULL,
    slowest     INTEGER NOT NULL,
    took_0      INTEGER NOT NULL,
    took_1      INTEGER NOT NULL,
    took_2      INTEGER NOT NULL,
    took_3      INTEGER NOT NULL,
    took_4      INTEGER NOT NULL,
    took_5      INTEGER NOT NULL,
    took_6      INTEGER NOT NULL,
    took_7      INTEGER NOT NULL,
    took_8      INTEGER NOT NULL,
    took_9      INTEGER NOT NULL,
    took_10     INTEGER NOT NULL,
    took_11     INTEGER NOT NULL,
    took_12     INTEGER NOT NULL,
    PRIMARY KEY (endpoint_id, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoint_minute_age ON endpoint_minute (minute);

-- The same counts as in message_hour by the minute and the device, kept for a day.
CREATE TABLE message_minute (
    device_id TEXT NOT NULL,
    minute    INTEGER NOT NULL, -- its start
    accepted  INTEGER NOT NULL,
    sent      INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    received  INTEGER NOT NULL,
    PRIMARY KEY (device_id, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_minute_age ON message_minute (minute);
