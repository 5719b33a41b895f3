-- +goose Up
-- Entries about messages and chats held numbers of contacts, and kept them after a contact was erased.
UPDATE audit SET name = '' WHERE kind IN ('message', 'chat') AND name <> '';
