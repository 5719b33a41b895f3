-- +goose Up
-- How often a message was handed to the network, when last, and what came of that: sent, refused,
-- not_connected, or '' as long as the network has not confirmed it. The attempts before are
-- logged.
ALTER TABLE message ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0;
ALTER TABLE message ADD COLUMN attempted_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE message ADD COLUMN attempt_outcome TEXT COLLATE "C" NOT NULL DEFAULT '';
-- When a scheduled message joined the queue, and when sending was done or given up.
ALTER TABLE message ADD COLUMN queued_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE message ADD COLUMN finished_at BIGINT NOT NULL DEFAULT 0;
CREATE TABLE send_attempt (
	message_id TEXT COLLATE "C" NOT NULL REFERENCES message (id) ON DELETE CASCADE,
	number     BIGINT NOT NULL,
	at         BIGINT NOT NULL,
	outcome    TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (message_id, number)
);

-- The message that an event reports; '' for none, and for events of earlier releases.
ALTER TABLE event ADD COLUMN message_id TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX event_message ON event (message_id, position) WHERE message_id <> '';
