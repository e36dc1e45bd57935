# Starts Redis with the password of REDIS_PASSWORD. It stores nothing: it has previews of running turns only.
set -euo pipefail

configuration=$(mktemp)
cat >"$configuration" <<END
bind 0.0.0.0
port 6379
requirepass $REDIS_PASSWORD
save ""
appendonly no
maxmemory 512mb
maxmemory-policy allkeys-lru
END
unset REDIS_PASSWORD
exec redis-server "$configuration"
