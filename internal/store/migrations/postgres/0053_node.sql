-- +goose Up
-- The servers that share this database. A server works for the devices and endpoints that it owns.
CREATE TABLE node (
    id          TEXT COLLATE "C" PRIMARY KEY,
    term        BIGINT NOT NULL, -- increases with each start of the server, and each lease that it lost
    name        TEXT COLLATE "C" NOT NULL, -- for operators
    started_at  BIGINT NOT NULL,
    lease_until BIGINT NOT NULL
);
ALTER TABLE device ADD COLUMN owner TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE device ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
CREATE INDEX device_owner ON device (owner) WHERE owner <> '';
ALTER TABLE endpoint ADD COLUMN owner TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX endpoint_owner ON endpoint (owner) WHERE owner <> '';
