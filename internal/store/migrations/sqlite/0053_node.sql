-- +goose Up
-- The servers that share this database. A server works for the devices and endpoints that it owns.
CREATE TABLE node (
    id          TEXT PRIMARY KEY,
    term        INTEGER NOT NULL, -- increases with each start of the server, and each lease that it lost
    name        TEXT NOT NULL, -- for operators
    started_at  INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;
ALTER TABLE device ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE device ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
CREATE INDEX device_owner ON device (owner) WHERE owner <> '';
ALTER TABLE endpoint ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX endpoint_owner ON endpoint (owner) WHERE owner <> '';
