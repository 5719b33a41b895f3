-- +goose Up
-- The bytes in the media storage: one row for each content of a workspace. A row is added with
-- the first file that has the content, and removed before the bytes are.
CREATE TABLE blob (
	workspace_id TEXT NOT NULL,
	hash TEXT NOT NULL, -- SHA-256 in hexadecimal digits
	size INTEGER NOT NULL, -- bytes
	PRIMARY KEY (workspace_id, hash)
);
INSERT INTO blob (workspace_id, hash, size)
	SELECT workspace_id, hash, max(CAST(json_extract(object, '$.size') AS INTEGER)) FROM media WHERE hash <> ''
	GROUP BY workspace_id, hash;

-- The sum of the sizes of a workspace's blobs.
CREATE TABLE storage (
	workspace_id TEXT PRIMARY KEY,
	bytes INTEGER NOT NULL
);
INSERT INTO storage (workspace_id, bytes) SELECT workspace_id, sum(size) FROM blob GROUP BY workspace_id;

ALTER TABLE workspace ADD COLUMN storage_mib INTEGER;
