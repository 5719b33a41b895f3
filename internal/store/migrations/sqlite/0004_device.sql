-- +goose Up
-- What the owner sets of a device.
ALTER TABLE device ADD COLUMN pace_minute INTEGER NOT NULL DEFAULT 0;    -- messages a minute; 0: the operator's default
ALTER TABLE device ADD COLUMN pace_new_chats INTEGER NOT NULL DEFAULT 0; -- the same for chats without a message yet
ALTER TABLE device ADD COLUMN receive INTEGER NOT NULL DEFAULT 3;        -- bits: 1 direct, 2 groups, 4 channels, 8 status
ALTER TABLE device ADD COLUMN proxy_url BLOB NOT NULL DEFAULT x'';       -- sealed; empty when there is none

-- What is known of a chat: a device's pace depends on it.
CREATE INDEX message_chat ON message (device_id, chat_id, direction, created_at);

-- Grows whenever what is being done for the device must be done anew.
ALTER TABLE device ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
