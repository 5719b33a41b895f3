-- +goose Up
-- What the people of a workspace have noted about a chat: the network knows nothing of it.
CREATE TABLE chat_note (
    workspace_id TEXT NOT NULL,
    device_id    TEXT NOT NULL,
    chat_id      TEXT NOT NULL,
    assignee     TEXT NOT NULL DEFAULT '', -- the user who takes care of it; perhaps no longer a member
    note         TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (device_id, chat_id)
) STRICT, WITHOUT ROWID;
