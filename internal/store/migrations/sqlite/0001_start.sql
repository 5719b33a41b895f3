-- +goose Up
-- Times are milliseconds since the Unix epoch, set by the program; 0 means "not yet".

CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE workspace (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    plan       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_key (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspace (id),
    name         TEXT NOT NULL,
    environment  TEXT NOT NULL,
    hash         BLOB NOT NULL UNIQUE,
    last_four    TEXT NOT NULL,
    scopes       TEXT NOT NULL, -- JSON array
    devices      TEXT NOT NULL, -- JSON array, or null for every device
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    revoked_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX api_key_workspace ON api_key (workspace_id, id);

-- Outbound messages accepted and not given back, by UTC month such as 2026-11.
CREATE TABLE usage (
    workspace_id TEXT NOT NULL,
    month        TEXT NOT NULL,
    messages     INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, month)
) STRICT, WITHOUT ROWID;

CREATE TABLE device (
    id            TEXT PRIMARY KEY,
    workspace_id  TEXT NOT NULL REFERENCES workspace (id),
    name          TEXT NOT NULL,
    mode          TEXT NOT NULL,
    status        TEXT NOT NULL,
    status_reason TEXT NOT NULL,
    desired       TEXT NOT NULL,
    account       TEXT NOT NULL, -- the driver's name for the link
    phone_number  TEXT NOT NULL,
    display_name  TEXT NOT NULL,
    metadata      TEXT NOT NULL, -- JSON object
    created_at    INTEGER NOT NULL,
    linked_at     INTEGER NOT NULL,
    connected_at  INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    sequence      INTEGER NOT NULL, -- of the newest event
    last_event_at INTEGER NOT NULL,
    deleted_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX device_workspace ON device (workspace_id, id);
CREATE INDEX device_desired ON device (desired) WHERE desired <> 'idle';

CREATE TABLE link (
    id              TEXT PRIMARY KEY,
    workspace_id    TEXT NOT NULL,
    device_id       TEXT NOT NULL,
    method          TEXT NOT NULL,
    status          TEXT NOT NULL,
    code            BLOB NOT NULL, -- sealed; empty when there is none
    code_expires_at INTEGER NOT NULL,
    allow_new       INTEGER NOT NULL,
    expected_number TEXT NOT NULL,
    account         TEXT NOT NULL, -- once scanned
    number          TEXT NOT NULL, -- once scanned
    reason          TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    ended_at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX link_device ON link (device_id, id);
CREATE UNIQUE INDEX link_open ON link (device_id) WHERE status = 'pending';

CREATE TABLE message (
    n             INTEGER PRIMARY KEY, -- order of acceptance
    id            TEXT NOT NULL UNIQUE,
    workspace_id  TEXT NOT NULL,
    device_id     TEXT NOT NULL,
    direction     TEXT NOT NULL,
    type          TEXT NOT NULL,
    chat_id       TEXT NOT NULL,
    sender        TEXT NOT NULL, -- the network's stable name of who wrote it; '' when the account did
    from_number   TEXT NOT NULL,
    from_lid      TEXT NOT NULL,
    from_name     TEXT NOT NULL,
    to_number     TEXT NOT NULL,
    body          TEXT NOT NULL,
    reply_to      TEXT NOT NULL,
    status        TEXT NOT NULL,
    error_code    TEXT NOT NULL,
    error_detail  TEXT NOT NULL,
    network_id    TEXT NOT NULL,
    source        TEXT NOT NULL,
    metadata      TEXT NOT NULL, -- JSON object
    created_at    INTEGER NOT NULL,
    sent_at       INTEGER NOT NULL,
    delivered_at  INTEGER NOT NULL,
    read_at       INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    frame_left    INTEGER NOT NULL, -- 1 from before the first attempt: the recipient may have it
    undecryptable INTEGER NOT NULL  -- 1 while an inbound message could not be read
) STRICT;
CREATE INDEX message_workspace ON message (workspace_id, n);
CREATE INDEX message_device ON message (device_id, n);
CREATE UNIQUE INDEX message_network ON message (device_id, network_id, sender);
CREATE INDEX message_queue ON message (device_id, n) WHERE status IN ('queued', 'sending');
CREATE INDEX message_expiry ON message (expires_at) WHERE status IN ('queued', 'sending');

-- The log of events. Its order is that of position, fixed at commit: one
-- writer hands positions out.
CREATE TABLE event (
    position     INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    workspace_id TEXT NOT NULL,
    device_id    TEXT NOT NULL,
    type         TEXT NOT NULL,
    sequence     INTEGER NOT NULL,
    body         BLOB NOT NULL, -- the very bytes every attempt carries
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX event_workspace ON event (workspace_id, position);
CREATE INDEX event_device ON event (device_id, position);

CREATE TABLE endpoint (
    id               TEXT PRIMARY KEY,
    workspace_id     TEXT NOT NULL REFERENCES workspace (id),
    url              TEXT NOT NULL,
    description      TEXT NOT NULL,
    events           TEXT NOT NULL, -- JSON array
    devices          TEXT NOT NULL, -- JSON array, or null
    headers          TEXT NOT NULL, -- JSON object
    status           TEXT NOT NULL,
    status_reason    TEXT NOT NULL,
    secret           BLOB NOT NULL, -- sealed
    secret_last_four TEXT NOT NULL,
    max_in_flight    INTEGER NOT NULL,
    ordered          INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    verified_at      INTEGER NOT NULL,
    attempts         INTEGER NOT NULL, -- of the handshake
    due_at           INTEGER NOT NULL, -- next try of the handshake
    since            INTEGER NOT NULL, -- position of the newest event it must not get
    failing_since    INTEGER NOT NULL, -- first failed attempt after the last success
    failures         INTEGER NOT NULL  -- attempts since then
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoint_workspace ON endpoint (workspace_id, id);
CREATE INDEX endpoint_pending ON endpoint (due_at) WHERE status = 'pending';

-- A delivery is a row of the webhook queue while it is pending, and of the
-- delivery log afterwards.
CREATE TABLE delivery (
    n                INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    workspace_id     TEXT NOT NULL,
    endpoint_id      TEXT NOT NULL,
    event_id         TEXT NOT NULL,
    position         INTEGER NOT NULL, -- of the event
    device_id        TEXT NOT NULL,
    type             TEXT NOT NULL,
    status           TEXT NOT NULL,
    attempts         INTEGER NOT NULL,
    due_at           INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    first_attempt_at INTEGER NOT NULL,
    last_attempt_at  INTEGER NOT NULL,
    last_status      INTEGER NOT NULL,
    last_reason      TEXT NOT NULL,
    completed_at     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX delivery_once ON delivery (endpoint_id, position);
CREATE INDEX delivery_due ON delivery (endpoint_id, due_at, n) WHERE status = 'pending';
CREATE INDEX delivery_log ON delivery (endpoint_id, n);
CREATE INDEX delivery_event ON delivery (event_id);

CREATE TABLE attempt (
    delivery_id TEXT NOT NULL,
    number      INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    duration    INTEGER NOT NULL, -- milliseconds
    status      INTEGER NOT NULL, -- of the answer; 0 when there was none
    reason      TEXT NOT NULL,
    answer      TEXT NOT NULL,    -- at most the first KiB
    PRIMARY KEY (delivery_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    workspace_id TEXT NOT NULL,
    method       TEXT NOT NULL,
    path         TEXT NOT NULL,
    key          TEXT NOT NULL,
    request_hash BLOB NOT NULL,
    answer       BLOB NOT NULL, -- sealed
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, method, path, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE sandbox_number (
    number       TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
