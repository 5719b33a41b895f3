-- +goose Up
-- What an endpoint's attempts came to, hour by hour: written with the attempts,
-- so that nobody has to count them.
CREATE TABLE endpoint_hour (
    endpoint_id TEXT NOT NULL,
    hour        INTEGER NOT NULL, -- its start
    succeeded   INTEGER NOT NULL, -- attempts
    failed      INTEGER NOT NULL, -- attempts
    exhausted   INTEGER NOT NULL, -- deliveries that were given up
    duration    INTEGER NOT NULL, -- milliseconds, of all attempts together
    slowest     INTEGER NOT NULL, -- milliseconds
    PRIMARY KEY (endpoint_id, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoint_hour_age ON endpoint_hour (hour);
