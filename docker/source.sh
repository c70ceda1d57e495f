#!/bin/sh
# Run once by the PostgreSQL image, in an empty data directory: the tables of dags/shop.py, and what Debezium needs to follow them.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$DEBEZIUM_PASSWORD" --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE SCHEMA shop;
CREATE TABLE shop.customers (id text PRIMARY KEY, name text, birth date, created timestamp);
CREATE TABLE shop.orders (id bigint PRIMARY KEY, customer_id text, total numeric(12, 2), qty int, st text, big text);
CREATE TABLE shop.items (order_id bigint, line int, sku text, note text, PRIMARY KEY (order_id, line));
INSERT INTO shop.customers VALUES ('c1', 'Ann', '1990-02-03', '2026-01-01 10:00'), ('c2', 'Bob', NULL, '2026-01-02 11:00');
INSERT INTO shop.orders VALUES (1, 'c1', 12.50, 1, 'new', NULL), (2, 'c9', 3.00, 2, 'new', NULL);
INSERT INTO shop.items VALUES (1, 1, 'tea', NULL), (1, 2, 'cup', 'blue');
CREATE ROLE debezium LOGIN REPLICATION PASSWORD :'password';
GRANT USAGE ON SCHEMA shop TO debezium;
GRANT SELECT ON ALL TABLES IN SCHEMA shop TO debezium;
CREATE PUBLICATION rejoin FOR TABLES IN SCHEMA shop;
SQL
