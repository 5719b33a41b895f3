-- +goose Up
-- The time zone in which the dashboard shows a workspace's times: a name of the IANA database; '': each person's own.
ALTER TABLE workspace ADD COLUMN time_zone TEXT COLLATE "C" NOT NULL DEFAULT '';
