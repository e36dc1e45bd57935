"""A key is created for an organisation whose name leads out of the data directory."""

import secrets
import shutil
import tempfile
from pathlib import Path

from bench.support.clients import Client
from bench.support.cluster import open_cluster
from footplate.domain.errors import FootplateError
from footplate.testing import replies, text, tool


async def attack() -> str | None:
    outside = Path(tempfile.gettempdir()) / f"footplate-outside-{secrets.token_hex(4)}"
    try:
        async with open_cluster() as cluster:
            await cluster.model.install("hello", replies([tool("bash", {"command": "pwd"})], [text("Hello.")]))
            try:
                # More steps upwards than needed: the parent of the root is the root.
                key = await cluster.create_key(f"{'../' * 20}{str(outside).lstrip('/')}")
            except FootplateError:
                return None
            async with Client(cluster, key=key) as client:
                session = await client.session()
                await client.run_turn(session, "Go. [[script:hello]]")
        return "the name of an organisation made a directory outside the data directory" if outside.exists() else None
    finally:
        shutil.rmtree(outside, ignore_errors=True)
