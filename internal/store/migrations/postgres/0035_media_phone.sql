-- +goose Up
-- How often the phone was asked to upload the file again.
ALTER TABLE media ADD COLUMN asked BIGINT NOT NULL DEFAULT 0;
-- The files of a device, for its purge.
CREATE INDEX media_device ON media (device_id) WHERE device_id <> '' AND status <> 'expired';
CREATE INDEX media_upload_device ON media_upload (device_id);
