-- +goose Up
-- The people that the devices of a workspace know. number is + and digits, lid is lid: and digits; '' if unknown.
-- A row that was merged into another one (merged_into), or whose person was erased (erased_at > 0), has only its id.
CREATE TABLE contact (
	id            TEXT NOT NULL PRIMARY KEY,
	workspace_id  TEXT NOT NULL,
	number        TEXT NOT NULL,
	lid           TEXT NOT NULL,
	push_name     TEXT NOT NULL, -- that people give themselves
	business_name TEXT NOT NULL, -- that the network verified
	merged_into   TEXT NOT NULL,
	erased_at     INTEGER NOT NULL,
	created_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX contact_list ON contact (workspace_id, id) WHERE merged_into = '' AND erased_at = 0;
CREATE INDEX contact_merged ON contact (merged_into) WHERE merged_into <> '';
-- By which names a contact is found: its number, its LID, and other forms of its number.
CREATE TABLE contact_key (
	workspace_id TEXT NOT NULL,
	name         TEXT NOT NULL,
	contact_id   TEXT NOT NULL,
	PRIMARY KEY (workspace_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX contact_key_contact ON contact_key (contact_id);
-- The devices that know a contact, and its name in the address book of each one's account.
CREATE TABLE contact_device (
	contact_id TEXT NOT NULL,
	device_id  TEXT NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	book_name  TEXT NOT NULL,
	PRIMARY KEY (contact_id, device_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX contact_device_contacts ON contact_device (device_id, contact_id);
-- Chats whose messages move to another one, because both are with the same person.
CREATE TABLE chat_join (
	device_id TEXT NOT NULL REFERENCES device (id) ON DELETE CASCADE,
	from_chat TEXT NOT NULL,
	to_chat   TEXT NOT NULL,
	PRIMARY KEY (device_id, from_chat)
) STRICT, WITHOUT ROWID;
-- People whose data is being removed: messages up to a number (message.n) in chats of a name, or sent by it.
CREATE TABLE erasure (
	workspace_id TEXT NOT NULL,
	name         TEXT NOT NULL,
	upto         INTEGER NOT NULL,
	at           INTEGER NOT NULL,
	PRIMARY KEY (workspace_id, name)
) STRICT, WITHOUT ROWID;
-- Who wrote a message, or got it in a direct chat; '' in older rows.
ALTER TABLE message ADD COLUMN contact_id TEXT NOT NULL DEFAULT '';
