-- +goose Up
-- What is wrong, and since when it was seen to be. told_at is when the operator was told; 0 before that.
CREATE TABLE alert (
	kind         TEXT NOT NULL,
	subject      TEXT NOT NULL,
	workspace_id TEXT NOT NULL,
	name         TEXT NOT NULL,
	detail       TEXT NOT NULL,
	since        INTEGER NOT NULL,
	told_at      INTEGER NOT NULL,
	PRIMARY KEY (kind, subject)
) STRICT, WITHOUT ROWID;
