-- +goose Up
-- The devices whose number has changed; see lowerHistory in retention.go.
CREATE INDEX device_history ON device (history_from) WHERE history_from > 0;
