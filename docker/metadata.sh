#!/bin/sh
# Run once by the PostgreSQL image, in an empty data directory: the database of the Iceberg catalog and the ledger, with an owner of its own.
# Nobody stays in a transaction for ever: what a scheduler has locked outlives it where its workers live on (docs/airflow.md).
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$LAKE_PASSWORD" --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE lake LOGIN PASSWORD :'password';
CREATE DATABASE lake OWNER lake;
ALTER DATABASE airflow SET idle_in_transaction_session_timeout = '60s';
REVOKE CONNECT ON DATABASE lake FROM PUBLIC;
SQL
