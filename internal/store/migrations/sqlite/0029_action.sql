-- +goose Up
-- An action on a message, such as a reaction or an edit, waits in the queue of its device in
-- the order of its chat, and arrives like a message. So it is a row of this table: about is
-- the network id of the message that it concerns, and '' for messages. Lists leave it out.
ALTER TABLE message ADD COLUMN about TEXT NOT NULL DEFAULT '';
CREATE INDEX message_about ON message (device_id, about) WHERE about <> '';

-- What actions have made of a message, as JSON: reactions, votes, when it was edited or
-- deleted; '' for nothing.
ALTER TABLE message ADD COLUMN state TEXT NOT NULL DEFAULT '';
