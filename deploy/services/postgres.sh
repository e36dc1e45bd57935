# Starts PostgreSQL. At the first start it creates the data directory, with the user and the database `footplate`, whose
# password is in POSTGRES_PASSWORD.
set -euo pipefail

data=/var/lib/footplate-postgres/data
if [ ! -f "$data/PG_VERSION" ]; then
  draft=$data.new
  rm -rf "$draft"
  initdb --pgdata="$draft" --username=footplate --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") \
    --auth=scram-sha-256 --encoding=UTF8 --no-locale
  echo 'host all all all scram-sha-256' >>"$draft/pg_hba.conf"
  # Single-user mode: the server that creates the database is never reachable.
  echo 'CREATE DATABASE footplate;' | postgres --single -D "$draft" postgres >/dev/null
  mv "$draft" "$data"
fi
unset POSTGRES_PASSWORD
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories= -c max_connections=200 \
  -c shared_buffers=256MB -c max_wal_size=2GB -c timezone=UTC -c log_timezone=UTC "$@"
