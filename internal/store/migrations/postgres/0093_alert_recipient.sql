-- +goose Up
-- What each recipient of alerts was told: the operator of the server (recipient is ''), or the people of a workspace.
-- told_at is when they were told that it is wrong; 0 before that. It takes the place of the table alert, which a server
-- of the previous release still reads while it runs beside this one.
CREATE TABLE alert_told (
	recipient    TEXT COLLATE "C" NOT NULL,
	way          TEXT COLLATE "C" NOT NULL, -- url or mail
	kind         TEXT COLLATE "C" NOT NULL,
	subject      TEXT COLLATE "C" NOT NULL,
	workspace_id TEXT COLLATE "C" NOT NULL,
	name         TEXT COLLATE "C" NOT NULL,
	detail       TEXT COLLATE "C" NOT NULL,
	since        BIGINT NOT NULL,
	told_at      BIGINT NOT NULL,
	PRIMARY KEY (recipient, way, kind, subject)
);
INSERT INTO alert_told (recipient, way, kind, subject, workspace_id, name, detail, since, told_at)
	SELECT '', way, kind, subject, workspace_id, name, detail, since, told_at
	FROM alert CROSS JOIN (SELECT 'url' AS way UNION ALL SELECT 'mail') AS ways;

-- Where the alerts of a workspace are posted to.
CREATE TABLE alert_url (
	workspace_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES workspace (id),
	url          BYTEA NOT NULL, -- encrypted
	host         TEXT COLLATE "C" NOT NULL, -- of the URL
	failed_at    BIGINT NOT NULL, -- since when alerts cannot be posted; 0 once one could
	reason       TEXT COLLATE "C" NOT NULL  -- why it could not
);

-- The members of a workspace who get its alerts by mail.
CREATE TABLE alert_member (
	workspace_id TEXT COLLATE "C" NOT NULL,
	user_id      TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (workspace_id, user_id),
	FOREIGN KEY (user_id, workspace_id) REFERENCES member (user_id, workspace_id) ON DELETE CASCADE
);
