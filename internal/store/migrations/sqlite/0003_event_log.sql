-- +goose Up
-- What the operator set for a workspace in place of its plan's and the server's
-- figures; NULL leaves it to them. Days are how long something is kept.
ALTER TABLE workspace ADD COLUMN message_limit INTEGER;
ALTER TABLE workspace ADD COLUMN device_limit INTEGER;
ALTER TABLE workspace ADD COLUMN event_days INTEGER;
ALTER TABLE workspace ADD COLUMN message_days INTEGER;

-- How far the log of a workspace was removed: every event up to this position
-- is gone, save those that a delivery still needs. made_at is the latest time
-- of a removed event.
CREATE TABLE event_floor (
    workspace_id TEXT PRIMARY KEY,
    position     INTEGER NOT NULL,
    made_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The part of usage that each device has, for keys that see only some.
CREATE TABLE device_usage (
    workspace_id TEXT NOT NULL,
    month        TEXT NOT NULL,
    device_id    TEXT NOT NULL,
    messages     INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, month, device_id)
) STRICT, WITHOUT ROWID;
INSERT INTO device_usage (workspace_id, month, device_id, messages)
    SELECT workspace_id, strftime('%Y-%m', created_at / 1000, 'unixepoch'), device_id, count(*) FROM message
    WHERE direction = 'outbound' AND source = 'api' AND (frame_left = 1 OR status NOT IN ('failed', 'expired', 'canceled'))
    GROUP BY 1, 2, 3;
