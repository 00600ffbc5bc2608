#!/bin/sh
# As much of the official image's entrypoint as is used here: a new cluster out of POSTGRES_USER, _PASSWORD and _DB.
set -eu
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /run/postgresql
  chown -R postgres:postgres "$PGDATA" /run/postgresql
  chmod 700 "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  secret=$(mktemp)
  printf '%s\n' "$POSTGRES_PASSWORD" > "$secret"
  initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --pwfile="$secret" --encoding=UTF8 --locale=C.UTF-8 \
    --auth-local=trust --auth-host=scram-sha-256 > /dev/null
  rm "$secret"
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  if [ "$POSTGRES_DB" != postgres ]; then
    printf 'CREATE DATABASE "%s"\n' "$POSTGRES_DB" | postgres --single -D "$PGDATA" postgres > /dev/null
  fi
fi
if [ "${1:-postgres}" = postgres ]; then
  [ $# = 0 ] || shift
  set -- postgres -c 'listen_addresses=*' "$@"
fi
exec "$@"
