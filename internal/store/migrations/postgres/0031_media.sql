-- +goose Up
-- A file that was uploaded, that is fetched from a URL for a message, or that came with a
-- message. Its bytes are in the media storage, under the workspace and the hash.
CREATE TABLE media (
	id TEXT PRIMARY KEY,
	workspace_id TEXT NOT NULL,
	device_id TEXT NOT NULL, -- of its message; '' for an upload
	message_id TEXT NOT NULL, -- of the message that it came with; '' for files to send
	hash TEXT NOT NULL, -- SHA-256 in hexadecimal digits; '' unless the bytes are stored
	status TEXT NOT NULL,
	object TEXT NOT NULL, -- what users see, as JSON
	source BYTEA NOT NULL, -- sealed: where it is fetched; empty for an upload
	attempts BIGINT NOT NULL, -- to fetch it, since it was last asked for
	next_at BIGINT NOT NULL, -- when a pending one is fetched
	created_at BIGINT NOT NULL,
	used_at BIGINT NOT NULL -- when the last message with it expires, or its creation
);
CREATE INDEX media_content ON media (workspace_id, hash) WHERE hash <> '';
CREATE INDEX media_waiting ON media (device_id, next_at) WHERE status = 'pending';
CREATE INDEX media_fetching ON media (next_at) WHERE status = 'pending' AND message_id = '';
CREATE INDEX media_age ON media (workspace_id, used_at) WHERE status <> 'expired';
CREATE INDEX media_expired ON media (workspace_id, id) WHERE status = 'expired';

-- What the network knows of a file that a device has uploaded there, sealed.
CREATE TABLE media_upload (
	media_id TEXT NOT NULL,
	device_id TEXT NOT NULL,
	kind TEXT NOT NULL, -- of the messages that carry it
	upload BYTEA NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (media_id, device_id, kind)
);

-- The file of a message; '' for none.
ALTER TABLE message ADD COLUMN media_id TEXT NOT NULL DEFAULT '';
CREATE INDEX message_media ON message (media_id) WHERE media_id <> '';
