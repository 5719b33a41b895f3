-- +goose Up
-- How far the exchange about the account's passkey is (see package passkeys), and what is to be told at this step:
-- the network's request, the credential, or the code to compare. It is encrypted.
ALTER TABLE link ADD COLUMN passkey_step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE link ADD COLUMN passkey_data BLOB NOT NULL DEFAULT x'';
