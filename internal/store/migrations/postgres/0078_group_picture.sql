-- +goose Up
-- The file of a group's picture as it was last read, and which picture of the network that is.
ALTER TABLE chat_group ADD COLUMN picture_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE chat_group ADD COLUMN picture_media TEXT COLLATE "C" NOT NULL DEFAULT '';
