"""The real servers: durable, kept out of strangers' hands, and the same after SIGKILL."""

import asyncio
import signal
import sys
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis as RedisClient
from redis.exceptions import AuthenticationError
from temporalio.client import Client

from footplate.stack import Postgres, Stack, leftovers
from footplate.stack.part import Part

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


async def test_the_settings_reach_each_part(stack: Stack) -> None:
    assert await _run(stack.settings.database_url, "SELECT current_database()") == "footplate"
    async with RedisClient.from_url(stack.settings.redis_url) as redis:
        assert await redis.ping()
    client = await Client.connect(stack.settings.temporal_address)
    assert await client.service_client.check_health()


async def test_postgres_keeps_its_promise_of_durability(stack: Stack) -> None:
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        assert await _run(stack.settings.database_url, f"SHOW {name}") == "on"


async def test_strangers_on_the_machine_are_kept_out(stack: Stack) -> None:
    assert stack.postgres is not None
    assert stack.redis is not None
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(f"postgresql://footplate:guess@{stack.postgres.address}")
    async with RedisClient.from_url(f"redis://{stack.redis.address}") as redis:
        with pytest.raises(AuthenticationError):
            await redis.ping()


async def test_a_killed_postgres_comes_back_with_what_was_committed(tmp_path: Path) -> None:
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


async def test_a_killed_launcher_leaves_nothing_and_its_state_is_there_again(tmp_path: Path) -> None:
    launcher = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LAUNCH, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert launcher.stdout is not None
    dsn = (await launcher.stdout.readline()).decode().strip()
    await _run(dsn, "CREATE TABLE kept AS SELECT 7 AS value")
    launcher.send_signal(signal.SIGKILL)
    await launcher.wait()

    # At once, while the old servers may still be on their way out.
    async with Stack(tmp_path) as stack:
        assert await _run(stack.settings.database_url, "SELECT value FROM kept") == 7
        parts = list(stack.parts)
    assert [part.title for part in parts if _left(part)] == []


async def test_a_given_address_starts_nothing(tmp_path: Path, stack: Stack) -> None:
    given = stack.settings
    other = Stack(
        tmp_path,
        database_url=given.database_url,
        redis_url=given.redis_url,
        temporal_address=given.temporal_address,
    )
    async with other:
        assert other.parts == []
        assert other.settings == given


def _left(part: Part) -> list[int]:
    return leftovers.find(part.program, part.working_directory())
