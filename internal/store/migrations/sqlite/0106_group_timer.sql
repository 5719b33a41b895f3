-- +goose Up
-- Messages to a group carry its timer, which no message needs to tell.
DELETE FROM chat_timer WHERE EXISTS (SELECT 1 FROM chat_group g
    WHERE g.device_id = chat_timer.device_id AND g.chat_id = chat_timer.chat_id AND g.left_at = 0);
INSERT INTO chat_timer (device_id, chat_id, seconds, set_at)
    SELECT device_id, chat_id, json_extract(summary, '$.disappearing'), 0 FROM chat_group
    WHERE left_at = 0 AND json_extract(summary, '$.disappearing') > 0;
