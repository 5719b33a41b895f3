-- +goose Up
-- The only order of the words is that of the messages of a workspace. With an order of all
-- messages beside it, the planner may walk through those of other workspaces.
ALTER TABLE message_word DROP CONSTRAINT message_word_pkey;
DROP INDEX message_word_place;
ALTER TABLE message_word ADD PRIMARY KEY (workspace_id, n);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION message_word_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM message_word w USING gone g WHERE w.workspace_id = g.workspace_id AND w.n = g.n;
	DELETE FROM word_change w USING gone g WHERE w.n = g.n;
	RETURN NULL;
END $$;
-- +goose StatementEnd

-- The newest messages of a workspace before one of them that match a query, at most so many, among
-- the next so many. The planner must not read and sort all messages of the workspace, which it
-- does while it has no statistics.
-- +goose StatementBegin
CREATE FUNCTION newest_words(workspace TEXT, below BIGINT, query TSQUERY, matching BIGINT, among BIGINT)
RETURNS SETOF BIGINT LANGUAGE sql STABLE
SET enable_bitmapscan = off SET enable_seqscan = off SET enable_sort = off SET jit = off AS $$
	SELECT newest.n FROM (SELECT n, words FROM message_word WHERE workspace_id = workspace AND n < below
		ORDER BY n DESC LIMIT among) AS newest
	WHERE newest.words @@ query ORDER BY newest.n DESC LIMIT matching
$$;
-- +goose StatementEnd
