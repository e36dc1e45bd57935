#!/usr/bin/env bash
# Checks the files of deploy/ that no test runs: alerts with promtool (Debian's `prometheus`), units with systemd-analyze,
# Kubernetes manifests with kubernetes-validate (PyPI, pinned, in an environment of its own), and compose.yaml.
set -euo pipefail
cd "$(dirname "$0")"

promtool check rules prometheus/alerts.yaml
promtool check config --syntax-only services/prometheus.yaml

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/etc/systemd/system" "$root/opt/footplate/bin" "$root/usr/lib/systemd"
cp systemd/*.service "$root/etc/systemd/system/"
cp --recursive /lib/systemd/system "$root/usr/lib/systemd/"
install /bin/true "$root/opt/footplate/bin/footplate"
problems=$(systemd-analyze verify --man=no --root="$root" footplate-worker.service footplate-api@8700.service 2>&1)
# Older versions of systemd ignore this one.
grep --invert-match DelegateSubgroup <<<"$problems" | grep . && exit 1

uvx --quiet --from kubernetes-validate==1.37.0 kubernetes-validate --strict --quiet -k 1.33 kubernetes/footplate.yaml

compose=$(docker compose version >/dev/null 2>&1 && echo "docker compose" || echo docker-compose)
mkdir "$root/secrets"
cp compose.yaml "$root/"
touch "$root"/secrets/{footplate,metrics,worker,postgres,redis,s3}.env
(cd "$root" && FOOTPLATE_NAME=localhost $compose config --quiet)
echo "deploy: no problem found"
