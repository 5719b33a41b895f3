-- +goose Up
-- The address books of the phones of devices. entry and other are + and digits, or lid: and digits, like the names in
-- contact_key. contact_device.book_name is no longer used.
CREATE TABLE address_book (
	device_id TEXT COLLATE "C" NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	entry     TEXT COLLATE "C" NOT NULL, -- by which the phone names the entry
	other     TEXT COLLATE "C" NOT NULL, -- what the entry says is the other name of the person; '' if nothing
	name      TEXT COLLATE "C" NOT NULL, -- what the owner of the phone calls the person
	PRIMARY KEY (device_id, entry)
);
CREATE INDEX address_book_other ON address_book (device_id, other) WHERE other <> '';
