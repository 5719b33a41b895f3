-- +goose Up
-- The bytes in the media storage: one row for each content of a workspace. A row is added with
-- the first file that has the content, and removed before the bytes are.
CREATE TABLE blob (
	workspace_id TEXT NOT NULL,
	hash TEXT NOT NULL, -- SHA-256 in hexadecimal digits
	size BIGINT NOT NULL, -- bytes
	PRIMARY KEY (workspace_id, hash)
);
INSERT INTO blob (workspace_id, hash, size)
	SELECT workspace_id, hash, max(CAST(CAST(object AS JSON) ->> 'size' AS BIGINT)) FROM media WHERE hash <> ''
	GROUP BY workspace_id, hash;

-- The sum of the sizes of a workspace's blobs.
CREATE TABLE storage (
	workspace_id TEXT PRIMARY KEY,
	bytes BIGINT NOT NULL
);
INSERT INTO storage (workspace_id, bytes)
	SELECT workspace_id, CAST(sum(size) AS BIGINT) FROM blob GROUP BY workspace_id;

ALTER TABLE workspace ADD COLUMN storage_mib BIGINT;
