-- +goose Up
-- The files of contacts' pictures as the accounts of devices last saw them, and which pictures of the network these are.
CREATE TABLE contact_picture (
	contact_id TEXT NOT NULL REFERENCES contact (id) ON DELETE CASCADE,
	device_id  TEXT NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	picture_id TEXT NOT NULL,
	media_id   TEXT NOT NULL,
	PRIMARY KEY (contact_id, device_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX contact_picture_device ON contact_picture (device_id);
