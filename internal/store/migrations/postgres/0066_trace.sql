-- +goose Up
-- The trace to which a message or a delivery belongs, as in the traceparent header of W3C Trace Context; '' for none.
ALTER TABLE message ADD COLUMN trace TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE delivery ADD COLUMN trace TEXT COLLATE "C" NOT NULL DEFAULT '';
