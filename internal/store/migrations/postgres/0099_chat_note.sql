-- +goose Up
-- What the people of a workspace have noted about a chat: the network knows nothing of it.
CREATE TABLE chat_note (
    workspace_id TEXT NOT NULL, -- like assignee, compared with the columns of member, which have no other collation
    device_id    TEXT COLLATE "C" NOT NULL,
    chat_id      TEXT COLLATE "C" NOT NULL,
    assignee     TEXT NOT NULL DEFAULT '', -- the user who takes care of it; perhaps no longer a member
    note         TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (device_id, chat_id)
);
