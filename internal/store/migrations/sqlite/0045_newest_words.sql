-- +goose Up
-- SQLite orders the messages that have a word by itself.
SELECT 1;
