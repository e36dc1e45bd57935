"""A migration that older code does not survive waits until no older code runs, and no older code starts afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from importlib.resources import files
from pathlib import Path

import asyncpg
import pytest
from alembic.config import Config
from bench.support import databases

from footplate import __version__
from footplate.cli.actions import doctor_checks
from footplate.config import Settings
from footplate.domain.errors import Conflict
from footplate.domain.ports.deployment_health import WorkerDescription
from footplate.stack import Stack
from footplate.store import schema_upgrade
from footplate.store.database import Database
from footplate.store.leases.api_process_registry import ApiProcessRegistry
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.migrations.schema_revisions import known_revision
from footplate.wiring.shared_components import open_database

_NEXT = "9000"
_MIGRATION = f"""
from alembic import op

revision = "{_NEXT}"
down_revision = "{known_revision()}"
needs_code = "{_NEXT}"


def upgrade() -> None:
    op.execute("alter table workers drop column running_turns")
"""


@pytest.fixture
async def dsn(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A database with today's schema. The next migration contracts it."""
    await databases.create_database(stack, "upgraded")
    (tmp_path / f"{_NEXT}_contract.py").write_text(_MIGRATION)
    alembic_config = schema_upgrade.alembic_config

    def with_next_migration(dsn: str) -> Config:
        config = alembic_config(dsn)
        versions = files("footplate.store") / "migrations" / "versions"
        config.set_main_option("version_path_separator", "newline")
        config.set_main_option("version_locations", f"{versions}\n{tmp_path}")
        return config

    monkeypatch.setattr(schema_upgrade, "alembic_config", with_next_migration)
    yield databases.dsn(stack, "upgraded")
    await databases.drop_database(stack, "upgraded")


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    opened = await Database.open(dsn, size=2)
    yield opened
    await opened.close()


async def _revision(database: Database) -> str:
    async with database.connection() as connection:
        return str(await connection.fetchval("select version_num from alembic_version"))


async def _execute(database: Database, statement: str) -> None:
    async with database.connection() as connection:
        await connection.execute(statement)


async def test_older_processes_delay_the_migration(dsn: str, database: Database) -> None:
    worker = WorkerDescription(version="0.2.0", schema_revision=known_revision())
    await WorkerLeases(database, worker).renew_lease("wrkr_old", "host-1", 5, [])
    await WorkerLeases(database).renew_lease("wrkr_older", "host-2", 5, [])
    async with ApiProcessRegistry(database).registered("apip_old", host="host-3", version="0.2.1"):
        with pytest.raises(Conflict) as caught:
            await schema_upgrade.upgrade_schema(dsn)
    shown = caught.value.message
    assert "worker wrkr_old on host-1 (version 0.2.0)" in shown
    assert "worker wrkr_older on host-2 (version unknown)" in shown
    assert "API apip_old on host-3 (version 0.2.1)" in shown
    assert "unknown program" not in shown
    assert "--force" in caught.value.help_text
    assert await _revision(database) == known_revision()
    for lease in ("wrkr_old", "wrkr_older"):
        await WorkerLeases(database).end_lease(lease)
    await schema_upgrade.upgrade_schema(dsn)
    assert await _revision(database) == _NEXT


async def test_force_migrates_anyway(dsn: str, database: Database) -> None:
    await WorkerLeases(database).renew_lease("wrkr_old", "host-1", 5, [])
    await schema_upgrade.upgrade_schema(dsn, force=True)
    assert await _revision(database) == _NEXT


async def test_a_process_counts_until_it_was_lost_for_a_minute(dsn: str, database: Database) -> None:
    await WorkerLeases(database).renew_lease("wrkr_lost", "host-1", 5, [])
    await _execute(database, "update workers set last_seen_at = clock_timestamp() - interval '50 seconds'")
    with pytest.raises(Conflict, match="wrkr_lost"):
        await schema_upgrade.upgrade_schema(dsn)
    await _execute(database, "update workers set last_seen_at = clock_timestamp() - interval '70 seconds'")
    await schema_upgrade.upgrade_schema(dsn)


async def test_a_connection_without_a_name_may_be_an_older_api(dsn: str) -> None:
    unnamed = await asyncpg.connect(dsn)
    try:
        with pytest.raises(Conflict, match="1 connections of an unknown program"):
            await schema_upgrade.upgrade_schema(dsn)
    finally:
        await unnamed.close()


async def test_newer_code_delays_nothing(dsn: str, database: Database) -> None:
    worker = WorkerDescription(version="9.0.0", schema_revision=_NEXT)
    await WorkerLeases(database, worker).renew_lease("wrkr_new", "host-1", 5, [])
    await asyncio.gather(*[schema_upgrade.upgrade_schema(dsn) for _ in range(2)])
    assert await _revision(database) == _NEXT


async def test_older_code_does_not_start_on_a_schema_that_needs_newer_code(dsn: str) -> None:
    settings = Settings(database_url=dsn)
    await schema_upgrade.upgrade_schema(dsn)
    with pytest.raises(Conflict, match=f"revision {_NEXT}") as caught:
        async with open_database(settings):
            pass
    assert f"({__version__}) is too old for the database" in caught.value.message
    finding = await doctor_checks.check_schema(settings)
    assert finding.state == "ok"


async def test_the_doctor_compares_code_and_schema(
    dsn: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(database_url=dsn)
    assert (await doctor_checks.check_schema(settings)).state == "failed"  # the next migration is not applied
    await schema_upgrade.upgrade_schema(dsn)
    monkeypatch.undo()
    finding = await doctor_checks.check_schema(settings)
    assert (finding.state, f"needs code that knows revision {_NEXT}" in finding.detail) == ("failed", True)
    await _execute(database, "delete from schema_requirements")
    finding = await doctor_checks.check_schema(settings)
    assert (finding.state, "which this version can use" in finding.detail) == ("ok", True)


async def test_an_api_process_that_stops_is_forgotten(database: Database) -> None:
    async with AsyncExitStack() as exits:
        await exits.enter_async_context(ApiProcessRegistry(database).registered("apip_1", host="host-1", version="1"))
        rows = await database.fetch("record_api_process", "apip_2", "host-1", "1", known_revision())
        assert rows == []
        await _execute(
            database, "update api_processes set last_seen_at = now() - interval '2 days' where id = 'apip_2'"
        )
        await database.fetch("record_api_process", "apip_1", "host-1", "1", known_revision())
        async with database.connection() as connection:
            assert [row["id"] for row in await connection.fetch("select id from api_processes")] == ["apip_1"]
    async with database.connection() as connection:
        assert await connection.fetch("select id from api_processes") == []
