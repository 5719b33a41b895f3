-- +goose Up
-- The contacts that no device knows any more: those of devices that were deleted before their contacts were deleted, too.
DELETE FROM contact_key WHERE NOT EXISTS (SELECT 1 FROM contact_device d WHERE d.contact_id = contact_key.contact_id);
DELETE FROM contact WHERE merged_into <> '' AND erased_at = 0
	AND NOT EXISTS (SELECT 1 FROM contact_device d WHERE d.contact_id = contact.merged_into);
DELETE FROM contact WHERE merged_into = '' AND erased_at = 0
	AND NOT EXISTS (SELECT 1 FROM contact_device d WHERE d.contact_id = contact.id);
