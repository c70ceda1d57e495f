#!/bin/sh
# What the entry point of the postgres image does with the variables that are used here.
set -eu
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" && chown -R postgres "$PGDATA" /var/run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf %s "$POSTGRES_PASSWORD" > /tmp/password
    initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 > /dev/null
    rm /tmp/password
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl --wait --options='-c listen_addresses=' start
    createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
    for file in /docker-entrypoint-initdb.d/*.sh; do
        if [ -x "$file" ]; then "$file"; else . "$file"; fi
    done
    pg_ctl --wait --mode=fast stop
fi
exec "$@" -c 'listen_addresses=*'
