# Starts SeaweedFS with one key, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and creates the bucket `footplate`.
set -euo pipefail

umask 077
configuration=/tmp/s3.json
cat >"$configuration" <<END
{"identities": [{"name": "footplate", "actions": ["Admin", "Read", "Write", "List"],
  "credentials": [{"accessKey": "$AWS_ACCESS_KEY_ID", "secretKey": "$AWS_SECRET_ACCESS_KEY"}]}]}
END
unset AWS_SECRET_ACCESS_KEY

create_bucket() {
  rm -f /tmp/ready
  until echo 's3.bucket.list' | weed shell -master=127.0.0.1:9333 2>/dev/null | grep --quiet --word-regexp footplate; do
    echo 's3.bucket.create -name footplate' | weed shell -master=127.0.0.1:9333 >/dev/null 2>&1 || true
    sleep 1
  done
  touch /tmp/ready
}
create_bucket &
# Only the S3 port is reachable from other containers: the other servers have no authentication.
exec weed server -dir=/var/lib/seaweedfs -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.telemetry=false -filer -s3 \
  -s3.ip.bind=0.0.0.0 -s3.port=8333 -s3.config="$configuration" -volume.max=100 -master.volumeSizeLimitMB=1024
