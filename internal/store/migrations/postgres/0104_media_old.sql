-- +goose Up
-- 0101 has taken their place. An index is dropped by itself: until the commit, PostgreSQL locks its table.
DROP INDEX media_fetching;
DROP INDEX media_waiting;
