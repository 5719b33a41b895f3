-- +goose Up
-- The values of an endpoint's own headers are sealed, their names are shown. The program
-- seals those of older rows when it starts (Endpoints.SealHeaders) and leaves '{}' in the
-- column headers, which a later release drops.
ALTER TABLE endpoint ADD COLUMN header_names TEXT NOT NULL DEFAULT '[]'; -- JSON array, sorted
ALTER TABLE endpoint ADD COLUMN header_values BLOB NOT NULL DEFAULT x''; -- sealed JSON object; empty without headers

-- How a receiver proves itself: echo or signed.
ALTER TABLE endpoint ADD COLUMN handshake TEXT NOT NULL DEFAULT 'echo';

-- Events of a replay whose delivery was already pending.
ALTER TABLE replay ADD COLUMN already_pending INTEGER NOT NULL DEFAULT 0;
