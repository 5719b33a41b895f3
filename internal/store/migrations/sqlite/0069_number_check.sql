-- +goose Up
-- Which numbers are on the network, as it said when it was asked. answer is JSON.
CREATE TABLE number_check (
	workspace_id TEXT NOT NULL,
	number       TEXT NOT NULL,
	answer       TEXT NOT NULL,
	checked_at   INTEGER NOT NULL,
	PRIMARY KEY (workspace_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX number_check_age ON number_check (checked_at);
