-- +goose Up
-- The words of messages, for searches, under the number of the message. They are written shortly
-- after the message.
CREATE VIRTUAL TABLE message_word USING fts5 (tenant, words, content = '', contentless_delete = 1, detail = column,
	tokenize = "unicode61 remove_diacritics 0");
-- Up to which message the words are written.
CREATE TABLE word_place (n INTEGER NOT NULL);
INSERT INTO word_place (n) VALUES (0);
-- Messages whose text changed since.
CREATE TABLE word_change (n INTEGER PRIMARY KEY);

-- +goose StatementBegin
CREATE TRIGGER message_word_gone AFTER DELETE ON message BEGIN
	DELETE FROM message_word WHERE rowid = old.n;
	DELETE FROM word_change WHERE n = old.n;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER message_word_changed AFTER UPDATE OF body, type ON message WHEN old.body <> new.body OR old.type <> new.type BEGIN
	INSERT INTO word_change (n) VALUES (new.n) ON CONFLICT DO NOTHING;
END;
-- +goose StatementEnd
