"""Migrations that convert existing rows."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from alembic import command
from bench.support import databases

from footplate.stack import Stack
from footplate.store import schema_upgrade
from footplate.store.database import SQL

_NAME = "migration_tests"
_SNAPSHOT = """
insert into snapshots (session_id, tree, seq, organisation, turn_id, begins, number, files, left_out, commits, departed)
values ('sesn_1', 'proj_1', $1::bigint, 'org', 'turn_1', false, $1::bigint, $2, '{}', '{"HEAD": "c", "a": "b"}', $3)
"""
_FORK = """
insert into stretches (session_id, last_seq, entries, owner, organisation) values ('sesn_2', 5, 1, 'sesn_1', 'org')
"""
_PROJECT = """
insert into projects (id, organisation, name, path, url, trust, metadata, permissions, archived_at)
values ($1, 'org', $1, $2, $3, 'nothing', '{}', $4::text::jsonb, case when $5 then now() end)
"""
_RULES = '{"deny": ["Bash(rm *)"], "ask": [], "allow": []}'
_EMPTY = '{"deny": [], "ask": [], "allow": []}'


@pytest.fixture
async def dsn(stack: Stack) -> AsyncIterator[str]:
    """The address of an empty database."""
    await databases.execute(stack, f"create database {_NAME}")
    yield databases.dsn(stack, _NAME)
    await databases.drop_database(stack, _NAME)


async def test_earlier_deliveries_are_migrated_for_sessions_and_their_forks(dsn: str) -> None:
    await asyncio.to_thread(command.upgrade, schema_upgrade.alembic_config(dsn), "0014")
    connection = await asyncpg.connect(dsn)
    try:
        await connection.executemany(_SNAPSHOT, [(3, "f3", "First"), (5, "f5", None), (7, "f7", "Second")])
        await connection.execute(_FORK)
        await schema_upgrade.upgrade_schema(dsn)
        for session, expected in (("sesn_1", ["First", "Second"]), ("sesn_2", ["First"])):
            rows = await connection.fetch(SQL["departures"], session, "proj_1", 99, "")
            assert [row["departed"] for row in rows] == expected
    finally:
        await connection.close()


async def test_rules_of_an_archived_project_apply_to_its_location(dsn: str) -> None:
    """Also if the project was created again without rules."""
    await asyncio.to_thread(command.upgrade, schema_upgrade.alembic_config(dsn), "0017")
    connection = await asyncpg.connect(dsn)
    try:
        await connection.executemany(
            _PROJECT,
            [
                ("ruled", "app", None, _RULES, True),
                ("again", "app", None, _EMPTY, False),
                ("behind", None, "https://Example.com/a.git", "{}", False),
                ("free", "other", None, "{}", False),
            ],
        )
        await schema_upgrade.upgrade_schema(dsn)
        rows = await connection.fetch("select id, place, permissions #>> '{deny,0}' as denied from projects")
        assert {row["id"]: (row["place"], row["denied"]) for row in rows} == {
            "ruled": ("path:/app", "Bash(rm *)"),
            "again": ("path:/app", "Bash(rm *)"),
            "behind": ("url:example.com/a", None),
            "free": ("path:/other", None),
        }
    finally:
        await connection.close()
