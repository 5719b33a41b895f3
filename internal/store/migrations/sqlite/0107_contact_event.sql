-- +goose Up
-- Events about contacts name the contact, so that they are emptied when it is erased.
UPDATE event SET message_id = coalesce(json_extract(CAST(body AS TEXT), '$.contact.id'), '')
	WHERE type = 'contact.identified' AND length(body) > 0;
