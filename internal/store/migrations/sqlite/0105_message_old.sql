-- +goose Up
-- 0103 has taken its place.
DROP INDEX message_queue;
