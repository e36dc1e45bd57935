"""Searches a dump of the database, log files and stored objects for secrets of API keys, in every usual encoding."""

import asyncio
import base64
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import asyncpg
import httpx2

from footplate.stack import binaries

_SECRET: Final = re.compile(rb"fp_[A-Za-z0-9_-]{43}")
"""Any secret, also of a key that the claim does not know."""
_BASE64_BLOCK: Final = 3


async def dump_database(database_url: str) -> bytes:
    program = str(binaries.find_postgres_program("pg_dump"))
    process = await asyncio.create_subprocess_exec(
        program, f"--dbname={database_url}", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"pg_dump failed: {err.decode()}")
    return out


def find_secrets(data: bytes, secrets: Sequence[str], where: str) -> list[str]:
    """Returns a fault for each secret that the data contains in any form."""
    faults = [f"{where} contains a secret in plain text"] if _SECRET.search(data) else []
    lowered = data.lower()
    for secret in secrets:
        faults += [f"{where} contains a secret as {name}" for name, form in _encodings(secret) if form in data]
        if secret.encode().hex().encode() in lowered:
            faults.append(f"{where} contains a secret as hex")
    return faults


def find_secrets_in_files(directories: Sequence[Path], secrets: Sequence[str]) -> list[str]:
    files = [path for directory in directories for path in directory.rglob("*") if path.is_file()]
    return [fault for path in files for fault in find_secrets(path.read_bytes(), secrets, f"the file {path.name}")]


def _encodings(secret: str) -> Iterator[tuple[str, bytes]]:
    yield "plain text", secret.encode()
    yield "plain text without its prefix", secret.removeprefix("fp_").encode()
    for shift in range(_BASE64_BLOCK):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # Within a longer text, only the characters that depend on the secret alone are the same.
            encoded = encode(b"\0" * shift + secret.encode())
            start = 0 if shift == 0 else shift + 1
            yield "base64", encoded.rstrip(b"=")[start:-1]


async def find_usable_hashes(database_url: str, base_url: str, limit: int) -> list[str]:
    """Tries the stored hashes as keys. Returns a fault for each that works."""
    connection = await asyncpg.connect(database_url)
    try:
        rows = await connection.fetch("select secret_hash from api_keys where revoked_at is null limit $1", limit)
    finally:
        await connection.close()
    faults = []
    async with httpx2.AsyncClient(base_url=base_url, trust_env=False) as http:
        for row in rows:
            stored: bytes = row["secret_hash"]
            encoded = base64.urlsafe_b64encode(stored).decode().rstrip("=")
            for candidate in (stored.hex(), encoded, f"fp_{encoded}"):
                response = await http.get("/v1/agents", headers={"authorization": f"Bearer {candidate}"})
                if response.status_code != httpx2.codes.UNAUTHORIZED:
                    faults.append(f"a stored hash was accepted as a key ({response.status_code})")
    return faults
