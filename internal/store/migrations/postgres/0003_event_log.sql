-- +goose Up
-- What the operator set for a workspace in place of its plan's and the server's
-- figures; NULL leaves it to them. Days are how long something is kept.
ALTER TABLE workspace ADD COLUMN message_limit BIGINT;
ALTER TABLE workspace ADD COLUMN device_limit BIGINT;
ALTER TABLE workspace ADD COLUMN event_days BIGINT;
ALTER TABLE workspace ADD COLUMN message_days BIGINT;

-- How far the log of a workspace was removed: every event up to this position
-- is gone, save those that a delivery still needs. made_at is the latest time
-- of a removed event.
CREATE TABLE event_floor (
    workspace_id TEXT COLLATE "C" PRIMARY KEY,
    position     BIGINT NOT NULL,
    made_at      BIGINT NOT NULL
);

-- The part of usage that each device has, for keys that see only some.
CREATE TABLE device_usage (
    workspace_id TEXT COLLATE "C" NOT NULL,
    month        TEXT COLLATE "C" NOT NULL,
    device_id    TEXT COLLATE "C" NOT NULL,
    messages     BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, month, device_id)
);
INSERT INTO device_usage (workspace_id, month, device_id, messages)
    SELECT workspace_id, to_char(to_timestamp(created_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM'), device_id, count(*) FROM message
    WHERE direction = 'outbound' AND source = 'api' AND (frame_left = 1 OR status NOT IN ('failed', 'expired', 'canceled'))
    GROUP BY 1, 2, 3;
