"""The composition root: builds the API process, the worker process and the administrative commands from all packages.

Each process imports only the packages that it needs: a worker loads no web framework, and a migration loads no engine.
Start-up must be fast, because processes are restarted often and the first turn waits for the start.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from footplate.config import Settings
from footplate.domain.organisations.limits import LimitName
from footplate.domain.projects.project import DEFAULT_ORGANISATION as DEFAULT_ORGANISATION


async def migrate(settings: Settings, *, force: bool = False) -> None:
    """Raise `Conflict` if the new schema would break processes that run older code, unless `force` is set."""
    from footplate.store.schema_upgrade import upgrade_schema

    await upgrade_schema(settings.database_url, force=force)


async def check_services(settings: Settings) -> None:
    """Raise the error with which the API and the workers would not start: of Redis, Temporal or the object store."""
    from footplate.wiring.shared_components import check_redis, open_objects
    from footplate.wiring.temporal_client import connect_temporal

    await check_redis(settings)
    await connect_temporal(settings)
    await open_objects(settings)


async def create_key(
    settings: Settings, organisation: str, name: str, roles: list[str], *, expires_at: datetime | None = None
) -> str:
    """Create an API key and return its secret, which cannot be read again."""
    from footplate.store.resources.api_keys import ApiKeys
    from footplate.wiring.shared_components import open_database

    async with open_database(settings) as database:
        return await ApiKeys(database).create_key(organisation, name, roles, expires_at=expires_at)


async def set_limit(settings: Settings, organisation: str, name: LimitName, scope: str, value: int | None) -> None:
    """Set the operator's limit for an organisation, or remove it."""
    from footplate.store.resources.limits import LimitStore
    from footplate.wiring.shared_components import open_database

    async with open_database(settings) as database:
        await LimitStore(database).set_operator_limit(organisation, name, scope, value)


async def bootstrap_key(settings: Settings) -> str:
    return await create_key(settings, DEFAULT_ORGANISATION, "first key", ["admin"])


async def run_api(settings: Settings) -> None:
    with _garbage_collector_off():
        from footplate.wiring import api

    await api.run(settings)


async def run_worker(settings: Settings) -> None:
    with _garbage_collector_off():
        from footplate.wiring import worker

    await worker.run(settings)


@contextmanager
def _garbage_collector_off() -> Iterator[None]:
    """Turn off the garbage collector during imports. It would take a quarter of the start time and find nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
