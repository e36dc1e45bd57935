#!/usr/bin/env bash
# Builds the base image of deploy/image/Dockerfile with mmdebstrap and gives it the name that the Dockerfile uses: for
# machines that reach a Debian mirror but no registry. Needs mmdebstrap (apt) and a Docker engine (DOCKER_HOST).
set -euo pipefail

base=$(sed -n 's/^ARG BASE=//p' "$(dirname "$0")/Dockerfile")
mirror=${DEBIAN_MIRROR:-http://deb.debian.org}
own_authorities=(/usr/local/share/ca-certificates/*.crt)
changes=()
archive=$(mktemp --suffix=.tar)
trap 'rm -f "$archive"' EXIT

# usr-is-merged instead of usrmerge, which depends on Perl.
options=(
  --variant=minbase '--aptopt=APT::Install-Recommends "false"'
  --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include=usr-is-merged,ca-certificates
)
if [ -e "${own_authorities[0]}" ]; then
  # A mirror behind a proxy that opens TLS: the build trusts the authorities that this machine trusts.
  options+=(
    --customize-hook='mkdir -p "$1/usr/local/share/ca-certificates"'
    --customize-hook='cp /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/"'
    --customize-hook='chroot "$1" update-ca-certificates'
  )
  bundle=/etc/ssl/certs/ca-certificates.crt
  changes+=(--change "ENV SSL_CERT_FILE=$bundle PIP_CERT=$bundle NODE_EXTRA_CA_CERTS=$bundle")
fi
# Without documentation and translations, like the slim images of the registry.
for path in doc man locale info; do options+=("--dpkgopt=path-exclude=/usr/share/$path/*"); done
mmdebstrap --quiet "${options[@]}" \
  --customize-hook='rm -rf "$1"/var/log/* "$1"/var/cache/apt/*.bin "$1"/var/lib/apt/lists/*' \
  bookworm "$archive" \
  "deb $mirror/debian bookworm main" \
  "deb $mirror/debian bookworm-updates main" \
  "deb $mirror/debian-security bookworm-security main"
docker import "${changes[@]}" --change 'CMD ["bash"]' "$archive" "$base" >/dev/null
echo "$base"
