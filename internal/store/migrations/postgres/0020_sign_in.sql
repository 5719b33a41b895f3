-- +goose Up
ALTER TABLE users ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0; -- rises when all sign-ins are ended
ALTER TABLE password_link ADD COLUMN alone BIGINT NOT NULL DEFAULT 0; -- 1: the password is all that is asked for then
