"""Builds the components that the API and the worker share, such as the database pool, the Temporal client, the
environment backend and the git mirrors.
"""

import gc
import os
import pwd
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import stamina.instrumentation
from temporalio.client import Client

from footplate.config import Settings
from footplate.domain.agents.environment_config import Backend
from footplate.domain.errors import Unavailable
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.command_network_access import Network
from footplate.domain.policy.hooks import HookAccess
from footplate.domain.projects.allowed_directories import AllowedRoots
from footplate.stack import temporal_connection
from footplate.store.database import Database, PlanCacheMode
from footplate.trees.projects.mirrors import Mirrors

_HUMAN_USER_IDS: Final = range(1000, 60_000)
"""The range of user ids for human users on Debian and systemd."""


def get_backend(settings: Settings) -> Backend:
    """Return what environments may request. The API refuses everything that the workers cannot enforce."""
    if settings.environment == "unsandboxed":
        return Backend(name="unsandboxed", network=Network("open"), can_limit_network=False)
    if settings.environment == "docker":
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


@asynccontextmanager
async def open_database(
    settings: Settings, *, patience: float = 5.0, plans: PlanCacheMode = "auto"
) -> AsyncIterator[Database]:
    # Retries while a database restarts are not logged. Giving up is logged where it is caught.
    stamina.instrumentation.set_on_retry_hooks([])
    database = await Database.open(
        settings.database_url, size=settings.database_pool, retry_seconds=patience, plan_cache_mode=plans
    )
    try:
        yield database
    finally:
        await database.close()


async def connect_temporal(settings: Settings) -> Client:
    try:
        return await temporal_connection.connect_temporal(
            settings.temporal_address, namespace=settings.temporal_namespace
        )
    except RuntimeError as error:
        raise Unavailable(
            f"Temporal at {settings.temporal_address} does not respond.",
            help_text="Start everything with `footplate dev`, or set FOOTPLATE_TEMPORAL_ADDRESS.",
        ) from error


def freeze_loaded_objects() -> None:
    """Exclude all loaded objects from garbage collection, once a process is ready.

    A full collection would pause the whole process, including every stream, for a tenth of a second.
    """
    gc.freeze()
