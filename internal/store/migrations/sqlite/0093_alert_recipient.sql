-- +goose Up
-- What each recipient of alerts was told: the operator of the server (recipient is ''), or the people of a workspace.
-- told_at is when they were told that it is wrong; 0 before that. It takes the place of the table alert, which a server
-- of the previous release still reads while it runs beside this one.
CREATE TABLE alert_told (
	recipient    TEXT NOT NULL,
	way          TEXT NOT NULL, -- url or mail
	kind         TEXT NOT NULL,
	subject      TEXT NOT NULL,
	workspace_id TEXT NOT NULL,
	name         TEXT NOT NULL,
	detail       TEXT NOT NULL,
	since        INTEGER NOT NULL,
	told_at      INTEGER NOT NULL,
	PRIMARY KEY (recipient, way, kind, subject)
) STRICT, WITHOUT ROWID;
INSERT INTO alert_told (recipient, way, kind, subject, workspace_id, name, detail, since, told_at)
	SELECT '', way, kind, subject, workspace_id, name, detail, since, told_at
	FROM alert CROSS JOIN (SELECT 'url' AS way UNION ALL SELECT 'mail') AS ways;

-- Where the alerts of a workspace are posted to.
CREATE TABLE alert_url (
	workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspace (id),
	url          BLOB NOT NULL, -- encrypted
	host         TEXT NOT NULL, -- of the URL
	failed_at    INTEGER NOT NULL, -- since when alerts cannot be posted; 0 once one could
	reason       TEXT NOT NULL  -- why it could not
) STRICT, WITHOUT ROWID;

-- The members of a workspace who get its alerts by mail.
CREATE TABLE alert_member (
	workspace_id TEXT NOT NULL,
	user_id      TEXT NOT NULL,
	PRIMARY KEY (workspace_id, user_id),
	FOREIGN KEY (user_id, workspace_id) REFERENCES member (user_id, workspace_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
