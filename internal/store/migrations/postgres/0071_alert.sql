-- +goose Up
-- What is wrong, and since when it was seen to be. told_at is when the operator was told; 0 before that.
CREATE TABLE alert (
	kind         TEXT COLLATE "C" NOT NULL,
	subject      TEXT COLLATE "C" NOT NULL,
	workspace_id TEXT COLLATE "C" NOT NULL,
	name         TEXT COLLATE "C" NOT NULL,
	detail       TEXT COLLATE "C" NOT NULL,
	since        BIGINT NOT NULL,
	told_at      BIGINT NOT NULL,
	PRIMARY KEY (kind, subject)
);
