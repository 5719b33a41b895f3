-- +goose Up
-- The files of contacts' pictures as the accounts of devices last saw them, and which pictures of the network these are.
CREATE TABLE contact_picture (
	contact_id TEXT COLLATE "C" NOT NULL REFERENCES contact (id) ON DELETE CASCADE,
	device_id  TEXT COLLATE "C" NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	picture_id TEXT COLLATE "C" NOT NULL,
	media_id   TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (contact_id, device_id)
);
CREATE INDEX contact_picture_device ON contact_picture (device_id);
