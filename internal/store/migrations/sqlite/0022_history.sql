-- +goose Up
-- A message added after the newest ones were removed takes their numbers again, so a
-- device's history must not end behind the newest message; see lowerHistory in retention.go.
UPDATE device SET history_from = (SELECT coalesce(max(n), 0) FROM message)
    WHERE history_from > (SELECT coalesce(max(n), 0) FROM message);
CREATE INDEX device_history ON device (history_from) WHERE history_from > 0;
