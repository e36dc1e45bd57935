"""A process that cannot start says why and what to do, in one paragraph with exit code 1."""

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
import pytest_asyncio
from bench.support import databases
from tests.integration.cli.conftest import Footplate

from footplate.cli.actions import doctor_checks
from footplate.cli.actions.doctor_checks import Finding
from footplate.config import Settings
from footplate.stack import Stack

_EMPTY = "startup_errors"
_BUCKET = {
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Responds as an S3 server that does not have the bucket."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def services(stack: Stack) -> AsyncIterator[dict[str, str]]:
    """The variables of a process that could start, and the values that the tests put into them."""
    await databases.execute(stack, f"create database {_EMPTY}")
    migrated = await databases.create_database(stack, f"{_EMPTY}_migrated")
    database = urlsplit(migrated)
    bucket_server = await asyncio.start_server(_refuse, "127.0.0.1", 0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield {
            **stack.settings.environment(),
            "FOOTPLATE_DATABASE_URL": migrated,
            "FOOTPLATE_METRICS_ADDRESS": "off",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{bucket_server.sockets[0].getsockname()[1]}",
            "database": migrated,
            "wrong_password": database._replace(netloc=f"footplate:se-cret@127.0.0.1:{database.port}").geturl(),
            "empty": databases.dsn(stack, _EMPTY),
            "redis": stack.settings.redis_url.rpartition("@")[2].removesuffix("/0"),
            "used_port": str(listener.getsockname()[1]),
        }
    bucket_server.close()
    for name in (_EMPTY, f"{_EMPTY}_migrated"):
        await databases.drop_database(stack, name)


@pytest.mark.parametrize(
    ("command", "variables", "message", "remedy"),
    [
        ("migrate", {"FOOTPLATE_DATABASE_URL": "{wrong_password}"}, "password authentication failed", "correct"),
        ("migrate", {"FOOTPLATE_DATABASE_URL": "postgresql://u:se-cret@127.0.0.1:1/x"}, "127.0.0.1:1/x", "correct"),
        ("migrate", {"FOOTPLATE_DATABASE_URL": "postgresql://u:se/cret@127.0.0.1/x"}, "URL is not valid", "correct"),
        ("migrate", {"FOOTPLATE_DATABASE_URL": "{database}?sslmode=se-cret"}, "sslmode", "correct"),
        ("worker", {"FOOTPLATE_DATABASE_URL": "{empty}"}, "does not have the schema", "footplate migrate"),
        ("api", {"FOOTPLATE_REDIS_URL": "http://:se-cret@127.0.0.1"}, "not a valid Redis URL", "redis://"),
        ("worker", {"FOOTPLATE_REDIS_URL": "redis://:se-cret@{redis}/0"}, "refused the credentials", "redis://"),
        ("api", {"FOOTPLATE_TEMPORAL_NAMESPACE": "nowhere"}, "no namespace 'nowhere'", "namespace create"),
        ("api", {"FOOTPLATE_OBJECTS_URL": "file:///no/such/place"}, "directory does not exist", "Create the directory"),
        (
            "worker",
            {"FOOTPLATE_OBJECTS_URL": "nonsense"},
            "at nonsense cannot be used",
            "correct FOOTPLATE_OBJECTS_URL",
        ),
        (
            "gc",
            {"FOOTPLATE_OBJECTS_URL": "s3://gone/x", **_BUCKET},
            "404 Not Found",
            "Create the directory or the bucket",
        ),
        ("api", {"FOOTPLATE_PORT": "{used_port}"}, "Address already in use", "--port"),
        ("dev", {"FOOTPLATE_DATA_DIR": "/proc/none"}, "data directory '/proc/none' cannot be", "FOOTPLATE_DATA_DIR"),
    ],
)
async def test_a_startup_error_is_one_paragraph_with_a_remedy(
    footplate: Footplate, services: dict[str, str], command: str, variables: dict[str, str], message: str, remedy: str
) -> None:
    given = {name: value.format(**services) for name, value in variables.items()}
    done = await footplate(command, **{**services, **given})
    assert done.code == 1, done.err
    assert message in done.err
    assert remedy in done.err
    assert "Traceback" not in done.err
    assert "se-cret" not in done.err.replace("sslmode=se-cret", "")
    lines = [line for line in done.err.splitlines() if not line.startswith("{")]
    assert len(lines) <= 3, done.err


async def test_doctor_reports_a_missing_object_store(footplate: Footplate, services: dict[str, str]) -> None:
    done = await footplate("doctor", **{**services, "FOOTPLATE_OBJECTS_URL": "file:///no/such/place"})
    assert done.code == 1
    assert [line for line in done.out.splitlines() if line != line.rstrip()] == []
    assert re.search(r"failed +Object store +The object store at file:///no/such/place cannot be used", done.out)


@pytest.mark.timing
async def test_doctor_connects_before_it_does_anything_slow(
    stack: Stack, services: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def block(_settings: Settings) -> Finding:
        time.sleep(4)  # noqa: ASYNC251 - as an import does on a busy machine
        return Finding("Blocked", "ok", "")

    monkeypatch.setattr(doctor_checks, "_TIMEOUT", 3.0)
    for name in ("environment", "leftovers", "harnesses"):
        monkeypatch.setattr(doctor_checks, f"check_{name}", block)
    found = await doctor_checks.run_checks(
        Settings(
            database_url=services["database"],
            redis_url=stack.settings.redis_url,
            temporal_address=stack.settings.temporal_address,
            data_dir=tmp_path,
        )
    )
    assert {finding.name for finding in found if finding.state == "failed"} == set()


async def test_a_database_url_may_have_an_sslmode(footplate: Footplate, services: dict[str, str]) -> None:
    done = await footplate("migrate", FOOTPLATE_DATABASE_URL=f"{services['empty']}?sslmode=prefer")
    assert done.code == 0, done.err
    connection = await asyncpg.connect(services["empty"])
    assert await connection.fetchval("select count(*) from alembic_version") == 1
    await connection.close()
