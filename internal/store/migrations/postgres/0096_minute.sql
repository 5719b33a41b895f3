-- +goose Up
-- Attempts by how long they took: columns took_0 and so on count those of each class of postern.Took.
ALTER TABLE endpoint_hour ADD COLUMN took_0 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_1 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_2 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_3 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_4 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_5 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_6 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_7 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_8 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_9 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_10 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_11 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN took_12 BIGINT NOT NULL DEFAULT 0;

-- The same counts as in endpoint_hour by the minute, kept for a day.
CREATE TABLE endpoint_minute (
    endpoint_id TEXT NOT NULL,
    minute      BIGINT NOT NULL, -- its start
    succeeded   BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    exhausted   BIGINT NOT NULL,
    duration    BIGINT NOT NULL,
    slowest     BIGINT NOT NULL,
    took_0      BIGINT NOT NULL,
    took_1      BIGINT NOT NULL,
    took_2      BIGINT NOT NULL,
    took_3      BIGINT NOT NULL,
    took_4      BIGINT NOT NULL,
    took_5      BIGINT NOT NULL,
    took_6      BIGINT NOT NULL,
    took_7      BIGINT NOT NULL,
    took_8      BIGINT NOT NULL,
    took_9      BIGINT NOT NULL,
    took_10     BIGINT NOT NULL,
    took_11     BIGINT NOT NULL,
    took_12     BIGINT NOT NULL,
    PRIMARY KEY (endpoint_id, minute)
);
CREATE INDEX endpoint_minute_age ON endpoint_minute (minute);

-- The same counts as in message_hour by the minute and the device, kept for a day.
CREATE TABLE message_minute (
    device_id TEXT NOT NULL,
    minute    BIGINT NOT NULL, -- its start
    accepted  BIGINT NOT NULL,
    sent      BIGINT NOT NULL,
    delivered BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    received  BIGINT NOT NULL,
    PRIMARY KEY (device_id, minute)
);
CREATE INDEX message_minute_age ON message_minute (minute);
