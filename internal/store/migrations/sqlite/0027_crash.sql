-- +goose Up
-- How many crashes of the process a device is suspected of, and when the latest was.
ALTER TABLE device ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE device ADD COLUMN crashed_at INTEGER NOT NULL DEFAULT 0;
-- Whether an attempt may link a number that another device of the workspace has.
ALTER TABLE link ADD COLUMN allow_second INTEGER NOT NULL DEFAULT 0;
