-- +goose Up
-- What an endpoint's attempts came to, hour by hour: written with the attempts,
-- so that nobody has to count them.
CREATE TABLE endpoint_hour (
    endpoint_id TEXT NOT NULL,
    hour        BIGINT NOT NULL, -- its start
    succeeded   BIGINT NOT NULL, -- attempts
    failed      BIGINT NOT NULL, -- attempts
    exhausted   BIGINT NOT NULL, -- deliveries that were given up
    duration    BIGINT NOT NULL, -- milliseconds, of all attempts together
    slowest     BIGINT NOT NULL, -- milliseconds
    PRIMARY KEY (endpoint_id, hour)
);
CREATE INDEX endpoint_hour_age ON endpoint_hour (hour);
