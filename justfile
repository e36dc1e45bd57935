# What developers and CI run. `just` alone lists the targets.

python := env("FOOTPLATE_PYTHON", ".venv/bin/python")
bin := parent_directory(python)

_default:
    @just --list --unsorted

# Create the virtual environment from the lock file.
setup:
    uv venv --allow-existing --python ">=3.11" .venv
    uv pip sync --python .venv/bin/python --require-hashes requirements.lock
    uv pip install --python .venv/bin/python --no-deps --no-build-isolation --editable .

# Write requirements.lock anew from pyproject.toml. Takes uv's options, `--upgrade` for one.
lock *options:
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-emit-find-links --extra dev --group dev --group build --custom-compile-command "just lock" \
        --output-file requirements.lock {{ options }} pyproject.toml

# All that needs no server: lint, format, types, layers, names, generated files.
check:
    {{ bin }}/ruff check .
    {{ bin }}/ruff format --check .
    {{ python }} -m bench.type_check
    {{ bin }}/lint-imports
    {{ python }} -m bench.code_rules
    {{ bin }}/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/ci.yml .github/workflows/release.yml
    {{ python }} -m tests.compat.page --check
    {{ python }} -m bench.prove.page --check
    {{ python }} -m tests.requirements.page --check
    {{ python }} -m tests.messages.snapshot --check

# Write docs/compatibility.md anew from what tests/compat shows of the official SDK.
compatibility:
    {{ python }} -m tests.compat.page

# Run tests; all of them, or what pytest's own arguments say.
test *arguments:
    {{ python }} -m pytest {{ arguments }}

# The whole product on this machine.
dev *arguments:
    {{ python }} -m footplate dev {{ arguments }}

# Every claim at full size, figures into bench/results. Takes hours.
bench:
    {{ python }} -m bench.prove all

# Run claims by key (core-2), name (kill-any-process) or group (core). QUICK=1 takes a small sample.
prove +claims:
    {{ python }} -m bench.prove {{ claims }}

# Collect every message that reaches a person or a model into tests/messages/messages.txt.
messages:
    {{ python }} -m tests.messages.snapshot

# Write docs/requirements.md from tests/requirements/requirements.toml and the marks on tests.
requirements:
    {{ python }} -m tests.requirements.page

# Write docs/evidence.md from the claims and their stored results.
evidence:
    {{ python }} -m bench.prove.page

# Install comparable servers, run the same work on all and kill each; writes docs/comparison.md. QUICK=1 takes a small sample.
compare *systems:
    {{ python }} -m bench.compare {{ systems }}

# A small sample of every claim; CI runs some of them.
samples:
    QUICK=1 {{ python }} -m bench.prove all

# The property tests with many examples.
fuzz *arguments:
    {{ python }} -m pytest -m hypothesis --hypothesis-profile=fuzz --timeout=3600 {{ arguments }}

# Run lanes of CI (bench/ci/lanes.toml) in this environment; all of them without a name.
lane *names:
    PATH="{{ bin }}:$PATH" {{ python }} -m bench.ci {{ names }}

# Record histories of today's workflows for tests/replay, under a new version number.
record-histories version:
    {{ python }} tests/replay/record.py {{ version }}

# What CI runs.
ci:
    .ci/run

# Install the packages of the dashboard, from web/package-lock.json.
web-install:
    {{ python }} web/npm.py ci --ignore-scripts

# Generate the dashboard's types from the API's OpenAPI document.
web-types:
    {{ python }} -m bench.support.openapi_document web/src/api/openapi.json
    {{ python }} web/npm.py run --silent schema

# Lint, format and types of the dashboard.
web-check: web-types
    {{ python }} web/npm.py run --silent types
    {{ python }} web/npm.py run --silent lint

# Unit tests of the dashboard.
web-test:
    {{ python }} web/npm.py run --silent test

# Build the dashboard into src/footplate/dashboard, where the API serves it.
web-build:
    {{ python }} web/npm.py run --silent build

# All browser tests of the dashboard. CI runs those that are marked `smoke`.
web-browser *options: web-types web-build
    {{ python }} -m pytest tests/browser {{ options }}

# Screenshots of all pages of the dashboard into docs/dashboard.
web-screenshots *arguments: web-types web-build
    {{ python }} -m bench.support.browser.dashboard_screenshots {{ arguments }}

# The dashboard with hot reload, in front of FOOTPLATE_BASE_URL; signed in with FOOTPLATE_API_KEY if it is set.
web-dev: web-types
    {{ python }} web/npm.py run dev

# A server with realistic content for the dashboard; prints its address and API key, and runs until Ctrl-C.
web-content *arguments:
    {{ python }} -m bench.support.dashboard_content {{ arguments }}

# Build the base of the container image with mmdebstrap, on a machine that reaches no registry.
image-base:
    deploy/image/base.sh

# Build the container image `footplate:TARGET`, `server` or `claude`, and print its size.
image target="server":
    docker build --file deploy/image/Dockerfile --target {{ target }} --tag footplate:{{ target }} .
    docker image inspect --format '{{{{ .Size }} bytes' footplate:{{ target }}

# Write the SBOM of an image to standard output, as CycloneDX in JSON. Needs uv.
image-sbom image="footplate:server":
    @deploy/image/sbom.sh {{ image }}

# Check alerts, units, manifests and compose.yaml of deploy/. Needs promtool (apt: prometheus), systemd, compose and uv.
deploy-check:
    deploy/check.sh
