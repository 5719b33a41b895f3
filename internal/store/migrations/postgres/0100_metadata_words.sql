-- +goose Up
-- Messages are found by their metadata, too: the words of those that have some are written again.
INSERT INTO word_change (n) SELECT n FROM message WHERE metadata NOT IN ('{}', 'null') AND n <= (SELECT max(n) FROM word_place)
	ON CONFLICT DO NOTHING;
