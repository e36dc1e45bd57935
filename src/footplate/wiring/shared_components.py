"""Builds the components that the API and the worker share, such as the database pool, the environment
backend and the git mirrors.
"""

import asyncio
import gc
import os
import pwd
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import asyncpg
import stamina.instrumentation
import structlog
from redis.exceptions import AuthenticationError, AuthorizationError, RedisError

from footplate.config import Settings
from footplate.domain.agents.environment_config import Backend, BackendName
from footplate.domain.errors import InvalidRequest, Unavailable
from footplate.domain.files.delivery import DeliveryService
from footplate.domain.files.recorded_delivery import RecordedDeliveryService
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.command_network_access import Network
from footplate.domain.policy.hooks import HookAccess
from footplate.domain.projects.allowed_directories import AllowedRoots
from footplate.store.database import Database, PlanCacheMode, address_without_secrets
from footplate.store.leases.branch_and_directory_leases import WriteLeases
from footplate.store.log.files.deliverable_work import Deliveries
from footplate.store.migrations.schema_revisions import check_needed_code
from footplate.store.object_store import Objects
from footplate.stream import redis_connections
from footplate.trees.delivery.merge_push_bundle import Deliverer
from footplate.trees.diffs.diff_reader import DiffReader
from footplate.trees.projects.mirrors import Mirrors

log = structlog.get_logger(__name__)

_CONNECT_SECONDS: Final = 30.0
_MAX_DELIVERIES: Final = 4
"""Concurrent deliveries of one process. Each one runs git."""
_HUMAN_USER_IDS: Final = range(1000, 60_000)
"""The range of user ids for human users on Debian and systemd."""


def get_backends(settings: Settings) -> Sequence[Backend]:
    """Return the backends that sessions may choose, the default first."""
    return [get_backend(settings, name) for name in settings.backend_names]


def get_backend(settings: Settings, name: BackendName) -> Backend:
    """Return what environments may request. The API refuses everything that the workers cannot enforce."""
    if name == "unsandboxed":
        return Backend(name="unsandboxed", network=Network("open"), can_limit_network=False)
    if name == "docker":
        network = Network("none" if settings.docker_network == "none" else "open")
        has_own_container = settings.docker_container is None  # the network of an existing container cannot be changed
        return Backend(
            name="docker",
            network=network if has_own_container else Network("open"),
            can_limit_network=has_own_container,
            supports_allow_lists=has_own_container,
            images=frozenset(settings.docker_image_names) if has_own_container else frozenset(),
            supports_setup=has_own_container,
        )
    return Backend(name="sandbox", network=settings.network, can_limit_network=True, supports_allow_lists=True)


def get_hook_access(settings: Settings) -> HookAccess:
    secret = settings.hook_secret
    return HookAccess(
        hosts=settings.hook_network,
        secret=secret.get_secret_value() if secret is not None else None,
        memory=settings.hook_memory,
    )


def get_allowed_roots(settings: Settings) -> AllowedRoots:
    homes = {
        str(Path.home()),
        *(one.pw_dir for one in pwd.getpwall() if one.pw_uid == 0 or one.pw_uid in _HUMAN_USER_IDS),
    }
    return AllowedRoots(settings.allowed_directory_roots, sorted({*homes, *map(os.path.realpath, homes)} - {"/"}))


def create_mirrors(settings: Settings) -> Mirrors:
    address_policy = AddressPolicy(settings.web_allowed)
    return Mirrors(
        settings.data_dir,
        root=settings.resolved_projects_root,
        address_policy=address_policy,
        seconds=settings.git_seconds,
        max_bytes=settings.git_bytes,
    )


def create_delivery_service(settings: Settings, database: Database, reader: DiffReader) -> DeliveryService:
    deliverer = Deliverer(
        settings.data_dir,
        reader,
        create_mirrors(settings),
        WriteLeases(database, hold=settings.branch_lease),
        max_concurrent=_MAX_DELIVERIES,
    )
    return RecordedDeliveryService(Deliveries(database), deliverer)


def create_data_directory(settings: Settings) -> None:
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise InvalidRequest(
            f"The data directory {str(settings.data_dir)!r} cannot be created: {error.strerror}.",
            field="FOOTPLATE_DATA_DIR",
            help_text="Set FOOTPLATE_DATA_DIR to a directory that this user can create or write to.",
        ) from error


@asynccontextmanager
async def open_database(
    settings: Settings, *, patience: float = 5.0, plans: PlanCacheMode = "auto"
) -> AsyncIterator[Database]:
    # Retries while a database restarts are not logged. Giving up is logged where it is caught.
    stamina.instrumentation.set_on_retry_hooks([])
    database = await Database.open(
        settings.database_url,
        size=settings.database_pool,
        retry_seconds=patience,
        plan_cache_mode=plans,
        pooler=settings.database_pooler,
    )
    try:
        await _check_schema(database, settings)
        yield database
    finally:
        await database.close()


async def _check_schema(database: Database, settings: Settings) -> None:
    """Reads an old table and a new one. `footplate doctor` compares the revision."""
    try:
        await database.fetch("heads", [])
        await check_needed_code(database)
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError) as error:
        raise Unavailable(
            f"The database at {address_without_secrets(settings.database_url)} does not have the schema of this "
            f"version: {error}.",
            help_text="Run `footplate migrate` with the same FOOTPLATE_DATABASE_URL.",
        ) from error


async def open_objects(settings: Settings) -> Objects:
    objects = Objects.open(settings.objects_url, settings.data_dir)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await objects.check_access()
    except TimeoutError as error:
        raise Unavailable(
            f"The object store at {settings.objects_url} does not respond.",
            help_text="Start it, or correct FOOTPLATE_OBJECTS_URL and AWS_ENDPOINT_URL.",
        ) from error
    return objects


async def check_redis(settings: Settings) -> None:
    """Raises an error for an invalid URL and for refused credentials. A server that does not respond is only logged:
    sessions run without it, and it is used as soon as it responds.
    """
    help_text = "Correct FOOTPLATE_REDIS_URL, for example redis://:PASSWORD@127.0.0.1:6379/0."
    try:
        client = redis_connections.create_command_client(settings.redis_url)
    except ValueError as error:
        raise InvalidRequest(
            "FOOTPLATE_REDIS_URL is not a valid Redis URL.", field="FOOTPLATE_REDIS_URL", help_text=help_text
        ) from error
    address = address_without_secrets(settings.redis_url)
    try:
        await client.ping()
    except (AuthenticationError, AuthorizationError) as error:
        raise Unavailable(f"Redis at {address} refused the credentials: {error}.", help_text=help_text) from error
    except (RedisError, OSError) as error:
        if isinstance(reason := error.__context__, ssl.SSLCertVerificationError):
            raise Unavailable(
                f"The certificate of Redis at {address} is refused: {reason.verify_message}.",
                help_text="Correct `ssl_ca_certs` or the host in FOOTPLATE_REDIS_URL, or the server's certificate.",
            ) from error
        log.warning(
            "Redis does not respond; events reach clients about a second later, and without previews",
            action="redis.down",
            address=address,
            reason=str(error),
        )
    finally:
        await client.aclose()


def freeze_loaded_objects() -> None:
    """Exclude all loaded objects from garbage collection, once a process is ready.

    A full collection would pause the whole process, including every stream, for a tenth of a second.
    """
    gc.freeze()
