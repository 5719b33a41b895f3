-- +goose Up
-- Which numbers are on the network, as it said when it was asked. answer is JSON.
CREATE TABLE number_check (
	workspace_id TEXT COLLATE "C" NOT NULL,
	number       TEXT COLLATE "C" NOT NULL,
	answer       TEXT COLLATE "C" NOT NULL,
	checked_at   BIGINT NOT NULL,
	PRIMARY KEY (workspace_id, number)
);
CREATE INDEX number_check_age ON number_check (checked_at);
