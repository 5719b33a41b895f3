-- +goose Up
-- Events about contacts name the contact, so that they are emptied when it is erased.
UPDATE event SET message_id = coalesce(convert_from(body, 'UTF8')::json #>> '{contact,id}', '')
	WHERE type = 'contact.identified' AND length(body) > 0;
