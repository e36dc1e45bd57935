"""The real servers: durable, closed to other users of the machine, and intact after SIGKILL."""

import asyncio
import errno
import os
import signal
import socket
import stat
import sys
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis as RedisClient
from redis.exceptions import AuthenticationError

from footplate.stack import Postgres, Stack, Temporal, orphan_processes
from footplate.stack.free_ports import LOOPBACK
from footplate.stack.services.service import Service
from footplate.stack.temporal_connection import connect_temporal

pytestmark = pytest.mark.timing

LAUNCH = """
import asyncio, sys
from pathlib import Path
from footplate.stack import Stack
async def main():
    async with Stack(Path(sys.argv[1])) as stack:
        print(stack.settings.database_url, flush=True)
        await asyncio.sleep(300)
asyncio.run(main())
"""


async def _run(dsn: str, query: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def test_every_service_is_reachable_with_the_settings(stack: Stack) -> None:
    assert await _run(stack.settings.database_url, "SELECT current_database()") == "footplate"
    async with RedisClient.from_url(stack.settings.redis_url) as redis:
        assert await redis.ping()
    client = await connect_temporal(stack.settings.temporal_address)
    assert await client.service_client.check_health()


async def test_postgres_is_configured_for_durability(stack: Stack) -> None:
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        assert await _run(stack.settings.database_url, f"SHOW {name}") == "on"


async def test_clients_without_the_password_are_refused(stack: Stack) -> None:
    assert stack.postgres is not None
    assert stack.redis is not None
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(f"postgresql://footplate:guess@{stack.postgres.address}")
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(f"postgresql://footplate@{stack.postgres.address}", password="", passfile="/dev/null")
    async with RedisClient.from_url(f"redis://{stack.redis.address}") as redis:
        with pytest.raises(AuthenticationError):
            await redis.ping()


def test_temporal_listens_on_no_port_of_the_machine(stack: Stack) -> None:
    temporal = stack.temporal
    assert temporal is not None
    assert temporal.exposure == ""
    for pid in (temporal.pid, *orphan_processes.find_processes(temporal.program, temporal.directory)):
        assert Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    with socket.socket() as client:
        assert client.connect_ex((LOOPBACK, temporal.port)) == errno.ECONNREFUSED


def test_temporals_socket_is_accessible_only_to_its_owner(stack: Stack) -> None:
    assert stack.temporal is not None
    path = Path(stack.temporal.address.removeprefix("unix:"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.stat().st_uid == os.geteuid()


async def test_temporals_socket_forwards_nothing_but_a_connect(stack: Stack) -> None:
    assert stack.temporal is not None
    reader, writer = await asyncio.open_unix_connection(stack.temporal.address.removeprefix("unix:"))
    writer.write(b"GET /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 405 ")
    writer.close()


async def test_many_clients_connect_at_once(stack: Stack) -> None:
    """Temporal sends first: its bytes must not be lost while a connection is being forwarded."""
    address = stack.settings.temporal_address
    clients = await asyncio.gather(*(connect_temporal(address) for _ in range(40)))
    assert all(await asyncio.gather(*(client.service_client.check_health() for client in clients)))


async def test_a_killed_temporal_restarts_at_the_same_address(tmp_path: Path) -> None:
    temporal = Temporal(tmp_path / ("long" * 30) / "temporal", log_file=tmp_path / "log", in_memory=True)
    await temporal.start()
    client = await connect_temporal(temporal.address)
    await temporal.kill()
    assert _find_orphans(temporal) == []
    await temporal.start()
    assert await client.service_client.check_health()
    await temporal.stop()
    assert _find_orphans(temporal) == []


async def test_without_a_namespace_temporal_reports_its_exposure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("footplate.stack.services.temporal.namespace_obstacle", lambda: "Operation not permitted.")
    temporal = Temporal(tmp_path / "temporal", log_file=tmp_path / "log", in_memory=True)
    assert temporal.exposure == "Operation not permitted."
    assert temporal.address == f"{LOOPBACK}:{temporal.port}"
    assert "namespace_main" not in " ".join(temporal.command())


async def test_a_killed_postgres_restarts_with_all_commits(tmp_path: Path) -> None:
    postgres = Postgres(tmp_path / "postgres", log_file=tmp_path / "log")
    await postgres.start()
    await _run(postgres.dsn, "CREATE TABLE kept AS SELECT 7 AS value")
    dsn = postgres.dsn
    await postgres.kill()
    with pytest.raises(OSError, match=r".*"):
        await asyncpg.connect(dsn)
    await postgres.start()
    assert postgres.dsn == dsn
    assert await _run(dsn, "SELECT value FROM kept") == 7
    await postgres.stop()


async def test_a_killed_launcher_leaks_no_process_and_its_state_is_restored(tmp_path: Path) -> None:
    launcher = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LAUNCH, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert launcher.stdout is not None
    dsn = (await launcher.stdout.readline()).decode().strip()
    await _run(dsn, "CREATE TABLE kept AS SELECT 7 AS value")
    launcher.send_signal(signal.SIGKILL)
    await launcher.wait()

    # At once, while the old servers may still be stopping.
    async with Stack(tmp_path) as stack:
        assert await _run(stack.settings.database_url, "SELECT value FROM kept") == 7
        parts = list(stack.services)
    assert [part.title for part in parts if _find_orphans(part)] == []


async def test_a_configured_address_starts_no_service(tmp_path: Path, stack: Stack) -> None:
    given = stack.settings
    other = Stack(
        tmp_path,
        database_url=given.database_url,
        redis_url=given.redis_url,
        temporal_address=given.temporal_address,
    )
    async with other:
        assert other.services == []
        assert other.settings == given


def _find_orphans(part: Service) -> list[int]:
    return orphan_processes.find_processes(part.program, part.working_directory())
