"""PostgreSQL behind a pooler in transaction mode, and with certificates that fit or do not."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from bench.support import databases
from bench.support.pgbouncer import Pgbouncer, find_pgbouncer
from tests.integration.stack.tls_proxy import Authority

from footplate.cli.actions import doctor_checks
from footplate.config import Settings
from footplate.domain.errors import Unavailable
from footplate.stack import Stack
from footplate.store import schema_upgrade
from footplate.store.database import Database

pytestmark = pytest.mark.skipif(
    not find_pgbouncer() and not os.environ.get("FOOTPLATE_TESTS_NEED_PGBOUNCER"), reason="pgbouncer is not installed"
)
_CONNECTIONS = 3


@pytest_asyncio.fixture
async def empty_database(stack: Stack) -> AsyncIterator[str]:
    await databases.execute(stack, "CREATE DATABASE pooled")
    yield databases.dsn(stack, "pooled")
    await databases.drop_database(stack, "pooled")


@pytest.mark.timing
async def test_a_pooler_migrates_and_serves_more_clients_than_it_has_connections(
    empty_database: str, tmp_path: Path
) -> None:
    pooler = Pgbouncer(tmp_path / "pooler", empty_database, connections=_CONNECTIONS)
    await pooler.start()
    try:
        await asyncio.gather(*[schema_upgrade.upgrade_schema(pooler.url) for _ in range(2)])
        await schema_upgrade.upgrade_schema(pooler.url)
        assert (await doctor_checks.check_schema(Settings(database_url=pooler.url))).state == "ok"
        opened = await asyncio.gather(*[Database.open(pooler.url, size=4, pooler="transaction") for _ in range(4)])
        servers = set[int]()

        async def work(database: Database) -> None:
            async with database.transaction() as connection:
                servers.add(await connection.fetchval("SELECT pg_backend_pid()"))
                assert await connection.fetchval("SELECT $1::jsonb", {"a": [1]}) == {"a": [1]}
                await connection.fetchval("SELECT pg_sleep(0.01)")
                assert await connection.fetchval("SELECT pg_backend_pid()") in servers
            assert await database.fetch("heads", []) == []

        await asyncio.gather(*[work(database) for database in opened * 20])
        assert 1 < len(servers) <= _CONNECTIONS
        await asyncio.gather(*[database.close() for database in opened])
    finally:
        await pooler.stop()


async def test_a_missing_setting_is_named(empty_database: str, tmp_path: Path) -> None:
    pooler = Pgbouncer(tmp_path / "pooler", empty_database)
    await pooler.start()
    try:
        with pytest.raises(Unavailable) as caught:
            await Database.open(pooler.url, size=1)
    finally:
        await pooler.stop()
    assert "plan_cache_mode" in caught.value.message
    assert caught.value.help_text == "A pooler in transaction mode needs FOOTPLATE_DATABASE_POOLER=transaction."


async def test_a_wrong_certificate_is_refused_with_the_setting(empty_database: str, tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")

    async def connect(server: Authority, host: str, *, days: int = 1, trusted: Authority = authority) -> str:
        """Return the error, or nothing if the connection works."""
        issued = server.issue(host, days=days)
        settings = (
            f"client_tls_sslmode = require\nclient_tls_cert_file = {issued.certificate}\n"
            f"client_tls_key_file = {issued.key}"
        )
        pooler = Pgbouncer(tmp_path / f"{host}{days}{server is other}", empty_database, settings=settings)
        await pooler.start()
        try:
            url = f"{pooler.url}?sslmode=verify-full&sslrootcert={trusted.certificate}"
            database = await Database.open(url.replace("127.0.0.1", "localhost"), size=1, pooler="transaction")
        except Unavailable as error:
            return f"{error.message} {error.help_text}"
        finally:
            await pooler.stop()
        await database.close()
        return ""

    assert await connect(authority, "localhost") == ""
    for refused, reason in (
        (await connect(other, "localhost"), "unable to get local issuer certificate"),
        (await connect(authority, "localhost", days=-1), "certificate has expired"),
        (await connect(authority, "elsewhere.test"), "Hostname mismatch"),
    ):
        assert reason in refused
        assert "Correct `sslrootcert` or the host in FOOTPLATE_DATABASE_URL" in refused


async def test_doctor_names_missing_rights(empty_database: str) -> None:
    await schema_upgrade.upgrade_schema(empty_database)
    owner = await asyncpg.connect(empty_database)
    try:
        await owner.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'")
        await owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        url = "postgresql://reader:reader@" + empty_database.partition("@")[2]
        finding = await doctor_checks.check_schema(Settings(database_url=url))
        assert (finding.state, "INSERT on " in finding.detail) == ("failed", True)
        await owner.execute("GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO reader")
        assert (await doctor_checks.check_schema(Settings(database_url=url))).state == "ok"
    finally:
        await owner.execute("DROP OWNED BY reader")
        await owner.execute("DROP ROLE reader")
        await owner.close()
