-- +goose Up
ALTER TABLE users ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0; -- rises when all sign-ins are ended
ALTER TABLE password_link ADD COLUMN alone INTEGER NOT NULL DEFAULT 0; -- 1: the password is all that is asked for then
