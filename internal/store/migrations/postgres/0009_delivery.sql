-- +goose Up
-- A delivery bears its latest attempt; the table attempt holds those before it,
-- so that the attempt that succeeds at once, as nearly all do, writes one row.
ALTER TABLE delivery ADD COLUMN last_duration BIGINT NOT NULL DEFAULT 0; -- milliseconds
ALTER TABLE delivery ADD COLUMN last_answer TEXT COLLATE "C" NOT NULL DEFAULT '';     -- at most the first KiB
UPDATE delivery SET (last_duration, last_answer) = (SELECT duration, answer FROM attempt WHERE delivery_id = delivery.id AND number = delivery.attempts)
    WHERE EXISTS (SELECT 1 FROM attempt WHERE delivery_id = delivery.id AND number = delivery.attempts);
DELETE FROM attempt WHERE number = (SELECT attempts FROM delivery WHERE id = attempt.delivery_id);
CREATE VIEW attempt_log AS
    SELECT delivery_id, number, at, duration, status, reason, answer FROM attempt
    UNION ALL SELECT id, attempts, last_attempt_at, last_duration, last_status, last_reason, last_answer FROM delivery WHERE attempts > 0;

-- The chat of a delivery to an endpoint that wants the events of one chat in
-- order; empty when nothing waits for it.
ALTER TABLE delivery ADD COLUMN chat TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX delivery_chat ON delivery (endpoint_id, chat, n) WHERE status = 'pending' AND chat <> '';
