-- +goose Up
-- What an act was done to may be gone when the log is read: its name stays. The
-- kind is what comes before the point of an act, for looking at one kind alone.
ALTER TABLE audit ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN kind TEXT NOT NULL DEFAULT '';
UPDATE audit SET kind = substr(act, 1, instr(act, '.') - 1);
CREATE INDEX audit_user ON audit (workspace_id, user_id, n);
CREATE INDEX audit_kind ON audit (workspace_id, kind, n);

-- What became of a device, among the many events of its messages.
CREATE INDEX event_health ON event (device_id, position) WHERE type LIKE 'device.%';
