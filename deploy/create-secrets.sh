#!/usr/bin/env bash
# Creates deploy/secrets (passwords, keys, a certificate) and deploy/.env for compose.yaml: deploy/create-secrets.sh NAME
# NAME is the host name of the server. Files that exist stay as they are. The certificate is signed by itself: replace
# secrets/tls.pem by your certificate, its chain and its key, in one file.
set -euo pipefail

name=${1:?usage: deploy/create-secrets.sh NAME}
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
chmod 0700 secrets
random() { openssl rand -hex 24; }
create() { [ -e "secrets/$1" ] || cat >"secrets/$1"; }

if [ ! -e secrets/footplate.env ]; then
  database=$(random) cache=$(random) key=$(openssl rand -hex 8) secret=$(random)
  create postgres.env <<<"POSTGRES_PASSWORD=$database"
  create redis.env <<<"REDIS_PASSWORD=$cache"
  create s3.env <<END
AWS_ACCESS_KEY_ID=$key
AWS_SECRET_ACCESS_KEY=$secret
END
  create footplate.env <<END
FOOTPLATE_DATABASE_URL=postgresql://footplate:$database@postgres:5432/footplate
FOOTPLATE_REDIS_URL=redis://:$cache@redis:6379/0
AWS_ACCESS_KEY_ID=$key
AWS_SECRET_ACCESS_KEY=$secret
END
fi
if [ ! -e secrets/metrics-token ]; then
  token=$(random)
  printf %s "$token" >secrets/metrics-token
  echo "FOOTPLATE_METRICS_TOKEN=$token" >secrets/metrics.env
fi
create worker.env <<END
# The keys of model providers: ANTHROPIC_API_KEY=… or OPENAI_API_KEY=…
END
if [ ! -e secrets/tls.pem ]; then
  openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj "/CN=$name" -addext "subjectAltName=DNS:$name" \
    -keyout secrets/tls.key -out secrets/tls.crt 2>/dev/null
  cat secrets/tls.crt secrets/tls.key >secrets/tls.pem
  rm secrets/tls.key
fi
# The users of the containers read these files. On the host, nobody else can enter their directory.
chmod 0444 secrets/tls.pem secrets/metrics-token
[ -e .env ] || printf 'FOOTPLATE_NAME=%s\n' "$name" >.env
echo "deploy/secrets and deploy/.env are ready for $name."
