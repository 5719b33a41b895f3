-- +goose Up
-- What an endpoint has not received, and is no longer attempted.
CREATE INDEX delivery_exhausted ON delivery (endpoint_id, position) WHERE status = 'exhausted';
