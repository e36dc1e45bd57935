"""What both kinds of process open: the database and the engine's client."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import stamina.instrumentation
from temporalio.client import Client

from footplate.config import Settings
from footplate.domain.errors import Unavailable
from footplate.store.database import Database, Plans


@asynccontextmanager
async def open_database(settings: Settings, *, patience: float = 5.0, plans: Plans = "auto") -> AsyncIterator[Database]:
    # Waiting for a database that restarts is not an incident; giving up is, and that is logged where it is caught.
    stamina.instrumentation.set_on_retry_hooks([])
    database = await Database.open(settings.database_url, size=settings.database_pool, patience=patience, plans=plans)
    try:
        yield database
    finally:
        await database.close()


async def connect_temporal(settings: Settings) -> Client:
    try:
        return await Client.connect(settings.temporal_address, namespace=settings.temporal_namespace)
    except RuntimeError as error:
        raise Unavailable(
            f"Temporal at {settings.temporal_address} does not answer.",
            help_text="Start everything with `footplate dev`, or set FOOTPLATE_TEMPORAL_ADDRESS.",
        ) from error


def keep_what_is_loaded() -> None:
    """Once a process is ready: what was imported stays for good, and the collector need not look at it again.

    A look at all of it holds up everything for a tenth of a second, every stream of the process included.
    """
    gc.freeze()
