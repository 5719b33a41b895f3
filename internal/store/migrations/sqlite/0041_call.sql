-- +goose Up
-- Devices report calls unless their owner turns that off: 16 is one more bit of receive.
UPDATE device SET receive = receive + 16;
