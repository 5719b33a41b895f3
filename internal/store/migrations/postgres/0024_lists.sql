-- +goose Up
-- Each filter of a list has its index, or looks at a bounded part of one; see
-- docs/decisions/0023-readers.md.
-- A conversation is read through this, of one device or of all.
DROP INDEX message_talk;
CREATE INDEX message_conversation ON message (workspace_id, chat_id, n);
-- The messages of a period.
CREATE INDEX message_time ON message (workspace_id, created_at, n);
-- What a person did to one kind of thing, and when someone signed in last, among
-- many other acts.
CREATE INDEX audit_user_kind ON audit (workspace_id, user_id, kind, n);
CREATE INDEX audit_sign_in ON audit (workspace_id, user_id, n) WHERE act = 'user.signed-in';
-- The replays of an endpoint, newest first, and the few that run among those that ended.
DROP INDEX replay_endpoint;
CREATE INDEX replay_endpoint ON replay (endpoint_id, id);
CREATE INDEX replay_running ON replay (endpoint_id) WHERE status = 'running';
