-- +goose Up
-- When the restriction of a restricted device ends; 0 if the vendor gave no time.
ALTER TABLE device ADD COLUMN restricted_until INTEGER NOT NULL DEFAULT 0;

-- Reasons are values of a closed list, without codes and times.
UPDATE device SET status_reason = 'temporary-ban' WHERE status_reason LIKE 'temporary-ban%';
UPDATE device SET status_reason = 'refused' WHERE status_reason LIKE 'refused-%' OR status_reason = 'number-taken';
UPDATE device SET status_reason = 'stream-error' WHERE status_reason LIKE 'stream-error-%';
UPDATE link SET reason = 'temporary-ban' WHERE reason LIKE 'temporary-ban%';
UPDATE link SET reason = 'refused' WHERE reason LIKE 'refused-%' OR reason = 'number-taken';
UPDATE link SET reason = 'stream-error' WHERE reason LIKE 'stream-error-%';
UPDATE link SET reason = 'too-many-codes' WHERE reason = 'rate-limited';
UPDATE device SET status_reason = 'too-many-codes' WHERE status_reason = 'rate-limited';
