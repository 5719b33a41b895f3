-- +goose Up
-- Who sees all workspaces in the dashboard, and changes their plans: until now
-- whoever set the server up, and from now on whom a command names too.
ALTER TABLE users ADD COLUMN operator BIGINT NOT NULL DEFAULT 0;
UPDATE users SET operator = 1 WHERE id IN (SELECT user_id FROM audit WHERE act = 'user.set-up');

-- Which operator made a link for a new password; '' is whoever reaches the socket.
ALTER TABLE password_link ADD COLUMN made_by TEXT NOT NULL DEFAULT '';

-- How many devices are in each state, over all workspaces.
CREATE INDEX device_state ON device (status) WHERE deleted_at = 0;
