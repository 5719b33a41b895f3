-- +goose Up
-- The words of messages, for searches, under the number of the message. They are written shortly
-- after the message.
CREATE TABLE message_word (
	n BIGINT PRIMARY KEY,
	workspace_id TEXT NOT NULL,
	words TSVECTOR NOT NULL
);
CREATE INDEX message_word_place ON message_word (workspace_id, n);
CREATE INDEX message_word_words ON message_word USING gin (words);
-- Up to which message the words are written.
CREATE TABLE word_place (n BIGINT NOT NULL);
INSERT INTO word_place (n) VALUES (0);
-- Messages whose text changed since.
CREATE TABLE word_change (n BIGINT PRIMARY KEY);

-- +goose StatementBegin
CREATE FUNCTION message_word_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM message_word w USING gone g WHERE w.n = g.n;
	DELETE FROM word_change w USING gone g WHERE w.n = g.n;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER message_word_gone AFTER DELETE ON message REFERENCING OLD TABLE AS gone
	FOR EACH STATEMENT EXECUTE FUNCTION message_word_gone();
-- +goose StatementBegin
CREATE FUNCTION message_word_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO word_change (n) VALUES (NEW.n) ON CONFLICT DO NOTHING;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER message_word_changed AFTER UPDATE OF body, type ON message FOR EACH ROW
	WHEN (OLD.body <> NEW.body OR OLD.type <> NEW.type) EXECUTE FUNCTION message_word_changed();
