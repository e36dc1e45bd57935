"""The checks of `footplate doctor`. Each check returns a finding. It reports a problem as a finding, and does not raise
an exception for it.
"""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Final, Literal
from urllib.parse import urlsplit

import asyncpg
from redis.asyncio import Redis
from redis.exceptions import RedisError

from footplate.cli.actions import service_rights
from footplate.cli.profile import dev_server
from footplate.config import Settings
from footplate.domain.agents.environment_config import BackendName
from footplate.domain.errors import FootplateError

CheckState = Literal["ok", "warning", "failed"]
_TIMEOUT: Final = 30.0
"""Seconds. A busy machine may need many to accept a connection."""
_MIN_POSTGRES: Final = 150_000
_NEEDED_CODE: Final = "SELECT max(needs_code) FROM schema_requirements"
_MIN_REDIS: Final = (6, 2)
_SHOWN: Final = 5
_START_HINT: Final = "Start everything with `footplate dev`, or"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. `failed`: no session can run. `warning`: some sessions are affected."""

    name: str
    state: CheckState
    detail: str
    mend: str = ""


async def run_checks(settings: Settings) -> Sequence[Finding]:
    """Connects to the services first, all at once. The other checks import much and start programs: on a busy machine
    this could block the process for longer than a connection may take.
    """
    services = await asyncio.gather(check_postgres(settings), check_redis(settings), check_temporal(settings))
    checks: list[Callable[[Settings], Awaitable[Finding]]] = [
        check_schema,
        check_objects,
        check_git,
        check_bash,
        check_namespaces,
        check_environment,
        check_leftovers,
        check_harnesses,
        check_credentials,
    ]
    return [*services, *[await check(settings) for check in checks]]


async def check_postgres(settings: Settings) -> Finding:
    name = "PostgreSQL"
    fix = (
        f"{_START_HINT} set FOOTPLATE_DATABASE_URL to the URL of a PostgreSQL server (15 or later) "
        "that this machine can reach."
    )
    try:
        connection = await asyncpg.connect(settings.database_url, timeout=_TIMEOUT, statement_cache_size=0)
    except (OSError, asyncpg.PostgresError, ValueError) as error:
        return Finding(
            name,
            "failed",
            f"{_address_without_password(settings.database_url)} does not respond: {_error_text(error)}",
            fix,
        )
    try:
        number = int(await connection.fetchval("SHOW server_version_num"))
        text = await connection.fetchval("SHOW server_version")
    finally:
        await connection.close()
    if number < _MIN_POSTGRES:
        return Finding(name, "failed", f"version {text} is too old", fix)
    return Finding(name, "ok", f"version {text} at {_address_without_password(settings.database_url)}")


async def check_schema(settings: Settings) -> Finding:
    from footplate.store import schema_upgrade

    name, newest = "Schema", schema_upgrade.newest_revision()
    fix = "Run `footplate migrate`."
    try:
        connection = await asyncpg.connect(settings.database_url, timeout=_TIMEOUT, statement_cache_size=0)
    except (OSError, asyncpg.PostgresError, ValueError):
        return Finding(name, "failed", "unknown: PostgreSQL does not respond", "Fix the PostgreSQL check first.")
    try:
        missing = await service_rights.find_missing_table_rights(connection)
        current = None if missing else await connection.fetchval("SELECT version_num FROM alembic_version")
        needed = await connection.fetchval(_NEEDED_CODE) if current and current > newest else None
    except asyncpg.UndefinedTableError:
        return Finding(name, "failed", "the database is empty", fix)
    finally:
        await connection.close()
    if missing:
        return Finding(
            name,
            "failed",
            f"the user in FOOTPLATE_DATABASE_URL does not have these rights: {_enumerate(missing)}",
            "Grant SELECT, INSERT, UPDATE and DELETE on all tables, or connect as the owner of the tables.",
        )
    return _compare_revisions(current, newest, needed)


def _compare_revisions(current: str | None, newest: str, needed: str | None) -> Finding:
    """`needed`: the oldest code that can use the schema of the database, if it is newer than this version's."""
    name = "Schema"
    if needed and needed > newest:
        detail = f"revision {current} needs code that knows revision {needed}, and this version knows {newest}"
        return Finding(name, "failed", detail, "Install the version with which the database was migrated.")
    if current and current > newest:
        return Finding(name, "ok", f"revision {current}, of a newer version, which this version can use")
    if current != newest:
        detail = f"the database has revision {current}, but this version needs {newest}"
        return Finding(name, "failed", detail, "Run `footplate migrate`.")
    return Finding(name, "ok", f"revision {current}")


async def check_redis(settings: Settings) -> Finding:
    name = "Redis"
    fix = (
        f"{_START_HINT} set FOOTPLATE_REDIS_URL to the URL of a Redis server (6.2 or later) or a Valkey server "
        "that this machine can reach."
    )
    try:
        async with Redis.from_url(
            settings.redis_url, socket_connect_timeout=_TIMEOUT, socket_timeout=_TIMEOUT
        ) as client:
            version = str((await client.info("server"))["redis_version"])
            refused = await service_rights.find_refused_redis_commands(client)
    except (RedisError, OSError, ValueError) as error:
        return Finding(
            name,
            "failed",
            f"{_address_without_password(settings.redis_url)} does not respond: {_error_text(error)}",
            fix,
        )
    if tuple(int(number) for number in version.split(".")[:2]) < _MIN_REDIS:
        return Finding(name, "failed", f"version {version} is too old", fix)
    if refused:
        return Finding(
            name,
            "failed",
            f"the user in FOOTPLATE_REDIS_URL may not run {_enumerate(refused)} on keys and channels that begin with "
            "footplate:",
            "Permit them in the access control list of Redis (docs/production.md has one).",
        )
    return Finding(name, "ok", f"version {version} at {_address_without_password(settings.redis_url)}")


async def check_temporal(settings: Settings) -> Finding:
    from footplate.wiring.temporal_client import connect_temporal

    try:
        await connect_temporal(settings)
    except FootplateError as error:
        return Finding("Temporal", "failed", error.message, error.help_text)
    return Finding("Temporal", "ok", f"namespace {settings.temporal_namespace!r} at {settings.temporal_address}")


async def check_objects(settings: Settings) -> Finding:
    from footplate.wiring.shared_components import open_objects

    name = "Object store"
    try:
        fault = await service_rights.find_object_store_fault(await open_objects(settings))
    except FootplateError as error:
        return Finding(name, "failed", error.message, error.help_text)
    if fault:
        return Finding(name, "failed", fault, "Use an object store with conditional writes, or update it.")
    return Finding(name, "ok", settings.objects_url or str(settings.data_dir / "objects"))


async def check_git(_settings: Settings) -> Finding:
    return await _check_program("git", "Install git: agents and working trees use it.", essential=False)


async def check_bash(_settings: Settings) -> Finding:
    return await _check_program("bash", "Install bash: agents use it as their shell.", essential=True)


async def check_namespaces(_settings: Settings) -> Finding:
    name = "Process namespaces"
    code, text = await _run_command("unshare", "--user", "--map-root-user", "--pid", "--fork", "true")
    if code != 0:
        return Finding(
            name,
            "warning",
            f"not available: {text}",
            "Without namespaces, the guardian must end the processes of a turn one by one. "
            "Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), or run workers as root.",
        )
    return Finding(name, "ok", "the guardian can give each turn its own namespace")


async def check_environment(settings: Settings) -> Finding:
    """Checks all backends that a worker with these settings offers."""
    found = [await _check_backend(settings, name) for name in settings.backend_names]
    worst = max(found, key=lambda finding: ("ok", "warning", "failed").index(finding.state))
    return replace(worst, detail="; ".join(finding.detail for finding in found))


async def _check_backend(settings: Settings, backend: BackendName) -> Finding:
    """Creates a sandbox or a container, as a worker does at startup."""
    from footplate.environments.sandbox import probe
    from footplate.wiring.environment_backend import find_docker, find_sandbox

    name = "Environment"
    if backend == "unsandboxed":
        fix = "Set FOOTPLATE_ENVIRONMENT=sandbox if agents process untrusted prompts, code or web pages."
        return Finding(name, "warning", "unsandboxed: agents have all permissions of the worker's user", fix)
    if backend == "docker":
        from footplate.environments.docker.engine_api import NoContainer

        try:
            docker = await find_docker(settings, worker="doctor")
        except NoContainer as error:
            return Finding(name, "failed", error.message, error.help_text)
        return Finding(name, "ok", docker.detail)
    try:
        found = await find_sandbox(settings)
    except probe.NoSandbox as error:
        return Finding(name, "failed", error.message, error.help_text)
    if found.host.cgroups is None:
        detail = f"sandbox, without control groups ({found.cgroups_problem}): memory is limited per process only"
        return Finding(name, "warning", detail, f"{probe.CGROUPS_HELP}.")
    return Finding(name, "ok", f"sandbox, with limits enforced by {found.host.cgroups.description}")


async def check_leftovers(settings: Settings) -> Finding:
    """Counts the leftovers that the reaper would remove on this machine. Only workers remove them."""
    from footplate.wiring.environment_backend import (
        count_abandoned_containers,
        count_unknown_sessions,
        find_leftovers,
    )

    name = "Leftovers"
    if sys.platform != "linux":
        return Finding(name, "ok", "not checked on this system")
    found = await asyncio.to_thread(find_leftovers, settings)
    try:
        unknown: int | None = await count_unknown_sessions(settings, found.sessions)
    except (FootplateError, OSError, asyncpg.PostgresError):
        unknown = None
    of_sessions = "unknown, because the database does not respond" if unknown is None else str(unknown)
    containers: int | None = 0
    if "docker" in settings.backend_names:
        try:
            containers = await count_abandoned_containers(settings)
        except FootplateError:
            containers = None
    of_containers = "an unknown number of containers (the Docker engine does not respond)"
    detail = (
        f"{len(found.over)} leases, {found.processes} processes, {found.cgroups} control groups, "
        f"{of_containers if containers is None else f'{containers} containers'}, "
        f"{found.directories - len(found.over)} sandbox test directories; directories of deleted sessions: "
        f"{of_sessions} (turns running on this machine: {len(found.living)})"
    )
    if not found.has_leftovers and not unknown and not containers:
        return Finding(name, "ok", detail)
    return Finding(
        name,
        "warning",
        detail,
        "A worker on this machine removes them at startup and every few seconds. Start one if none is running.",
    )


async def check_harnesses(settings: Settings) -> Finding:
    from footplate.harness.registry import missing_extra

    name = "Harnesses"
    found = {point.name: point for point in entry_points(group="footplate.harnesses")}
    broken: list[str] = []
    missing: dict[str, str] = {}
    for point in found.values():
        try:
            point.load()
        except Exception as error:  # noqa: BLE001 - any exception of a third-party package is a finding
            if extra := missing_extra(point, error):
                missing[point.name] = extra
            else:
                broken.append(f"{point.name} ({_error_text(error)})")
    if settings.default_harness not in found:
        installed = ", ".join(sorted(found)) or "none"
        detail = f"the default {settings.default_harness!r} is not installed; installed: {installed}"
        return Finding(
            name, "failed", detail, "Install the package that provides it, or set FOOTPLATE_DEFAULT_HARNESS."
        )
    if broken:
        return Finding(name, "failed", f"cannot be loaded: {', '.join(broken)}", "Fix or uninstall the package.")
    if missing:
        fix = f"Install {', '.join(missing.values())} if agents use them."
        is_default = settings.default_harness in missing
        return Finding(name, "failed" if is_default else "warning", f"not installed: {', '.join(missing)}", fix)
    return Finding(name, "ok", ", ".join(sorted(found)))


async def check_credentials(settings: Settings) -> Finding:
    from footplate.wiring import model_connections

    name = "Model credentials"
    try:
        configured = model_connections.load_configured_connections(settings)
        model_connections.load_endpoints(settings)
    except FootplateError as error:
        return Finding(name, "failed", error.message, error.help_text)
    missing = {extra for one in configured if (extra := model_connections.find_missing_extra(one.provider))}
    present = [*settings.model_providers, *(_describe_connection(one.name, one.organisation) for one in configured)]
    if missing:
        extras = ",".join(sorted(missing))
        fix = f"Install footplate[{extras}] where the workers run."
        return Finding(name, "warning", f"packages of providers are missing: {extras}", fix)
    if not present and (running := dev_server.find_dev_server(settings.data_dir)) and running.providers:
        return Finding(name, "ok", f"{running.providers}, of the running `footplate dev`")
    if not present:
        fix = "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or FOOTPLATE_MODEL_CONNECTIONS where the workers run."
        return Finding(name, "warning", "none, so no model can be called", fix)
    return Finding(name, "ok", ", ".join(present))


def _describe_connection(name: str, organisation: str | None) -> str:
    return name if organisation is None else f"{name} (of {organisation})"


async def _check_program(program: str, fix: str, *, essential: bool) -> Finding:
    path = shutil.which(program)
    if path is None:
        return Finding(program, "failed" if essential else "warning", "not found on the PATH", fix)
    _, text = await _run_command(path, "--version")
    return Finding(program, "ok", text.splitlines()[0] if text else path)


async def _run_command(*argv: str) -> tuple[int, str]:
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
    except OSError as error:
        return 127, _error_text(error)
    text, _ = await process.communicate()
    return process.returncode or 0, text.decode(errors="replace").strip()


def _enumerate(items: Sequence[str]) -> str:
    return ", ".join(items[:_SHOWN]) + (f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else "")


def _address_without_password(url: str) -> str:
    """Returns the address of a URL without its password."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}{parts.path}"


def _error_text(error: BaseException) -> str:
    return str(error) or type(error).__name__
