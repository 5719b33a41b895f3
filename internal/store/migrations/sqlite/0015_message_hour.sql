-- +goose Up
-- What became of the messages of a workspace, by the hour in which they were
-- accepted or came: written with the messages, so that nobody has to count them.
-- What the account wrote elsewhere is in none of them.
CREATE TABLE message_hour (
    workspace_id TEXT NOT NULL,
    hour         INTEGER NOT NULL, -- its start
    accepted     INTEGER NOT NULL, -- messages of the API, all below among them but received
    sent         INTEGER NOT NULL, -- that the network took, delivered ones among them
    delivered    INTEGER NOT NULL, -- that arrived, read ones among them
    failed       INTEGER NOT NULL, -- that failed or expired
    received     INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_hour_age ON message_hour (hour);
INSERT INTO message_hour (workspace_id, hour, accepted, sent, delivered, failed, received)
    SELECT workspace_id, created_at - created_at % 3600000, sum(direction = 'outbound'), sum(status IN ('sent', 'delivered', 'read')),
        sum(status IN ('delivered', 'read')), sum(status IN ('failed', 'expired')), sum(direction = 'inbound')
    FROM message WHERE source = 'api' OR direction = 'inbound' GROUP BY 1, 2;
