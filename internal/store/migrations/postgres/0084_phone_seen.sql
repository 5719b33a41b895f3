-- +goose Up
-- When the phone of a device's account was last seen, 0 if that is not known; and when device.phone_unseen reported that
-- it was not seen for long, 0 if it was seen since.
ALTER TABLE device ADD COLUMN phone_seen_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE device ADD COLUMN phone_unseen_at BIGINT NOT NULL DEFAULT 0;
