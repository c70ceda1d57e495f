#!/bin/sh
# Run once by the PostgreSQL image, in an empty data directory: the database of the Iceberg catalog and the ledger, with an owner of its own.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$LAKE_PASSWORD" --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE lake LOGIN PASSWORD :'password';
CREATE DATABASE lake OWNER lake;
REVOKE CONNECT ON DATABASE lake FROM PUBLIC;
SQL
