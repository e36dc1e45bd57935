"""A key of another organisation works in the developer's repository and writes a git hook there."""

import asyncio
import subprocess
import tempfile
from pathlib import Path

from anthropic import APIStatusError

from bench.support.clients import Client
from bench.support.cluster import open_cluster
from footplate.testing import replies, text, tool

_COMMAND = "echo 'echo owned' > .git/hooks/pre-commit"


async def attack() -> str | None:
    with tempfile.TemporaryDirectory(prefix="footplate-named-") as directory:
        repository = await asyncio.to_thread(_make_repository, directory)
        async with open_cluster(environment={"FOOTPLATE_NAMED_DIRECTORIES": "true"}) as cluster:
            await cluster.model.install("hook", replies([tool("bash", {"command": _COMMAND})], [text("Done.")]))
            async with Client(cluster, key=await cluster.create_key("another")) as client:
                try:
                    session = await client.session(extra_body={"context": {"directory": str(repository)}})
                    await client.run_turn(session, "Go. [[script:hook]]")
                except APIStatusError:
                    return None
        written = await asyncio.to_thread((repository / ".git/hooks/pre-commit").exists)
    return "a key of another organisation wrote a git hook into the developer's repository" if written else None


def _make_repository(directory: str) -> Path:
    repository = Path(directory).resolve() / "repository"
    Path(directory).chmod(0o755)
    subprocess.run(["/usr/bin/git", "init", "-q", str(repository)], check=True)
    return repository
