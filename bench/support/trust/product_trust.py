"""Tests trust through the whole product: changes a project's trust between the turns of one session."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from bench.support.crash import interrupted_turn
from bench.support.trust import hostile_repository
from bench.support.trust.sandboxed_sessions import Repository
from footplate.domain.sessions import events as ev
from footplate.testing import replies, text, tool

_SHORT: Final = "short"
_WRITES: Final = "writes"
_UNUSED_URL: Final = "http://127.0.0.1:9"


async def find_faults() -> list[str]:
    """Runs one session with the project's trust set to nothing, instructions, all and nothing again; returns faults."""
    found: list[str] = []
    async with _open_cluster() as (cluster, client, commit):
        made = await client.sdk.post("/v1/projects", body={"path": "app"}, cast_to=dict[str, Any])
        if made["trust"] != "nothing":
            found.append(f"a project is trusted for {made['trust']} by default")
        agent = await client.agent(extra_body={"harness": "claude"})
        session_id = await client.session(agent, extra_body={"project_ids": [made["id"]]})
        tree = interrupted_turn.workspace_path(cluster, session_id)
        for number, trust in enumerate(("nothing", "instructions", "all", "nothing")):
            if number:
                await client.sdk.post(f"/v1/projects/{made['id']}", body={"trust": trust}, cast_to=dict[str, Any])
            await cluster.model.clear()
            script = _WRITES if number == 0 else _SHORT
            events = await client.run_turn(session_id, f"Go. [[script:{script}]]")
            body = str(await cluster.model.requests())
            marks = sorted(path.name for path in tree.glob(f"{hostile_repository.MARK}*"))
            for path in tree.glob(f"{hostile_repository.MARK}*"):
                path.unlink()
            record = _record(events)
            checks = {
                "ended well": events[-1]["stop_reason"]["type"] == "end_turn",
                "sends the base commit's instructions": (hostile_repository.INSTRUCTION_TOKENS["CLAUDE.md"] in body)
                == (trust != "nothing"),
                "does not send the agent's own files": hostile_repository.OWN_TOKEN not in body,
                "ran hooks": bool(marks) == (trust == "all"),
                "has its record": (record.get("trust"), record.get("commit"))
                == ((None, None) if trust == "nothing" else (trust, commit)),
            }
            found += [f"turn {number + 1}, {trust}: failed: {what}" for what, holds in checks.items() if not holds]
    return found


def _record(events: list[Event]) -> dict[str, Any]:
    first = next(event for event in events if event["type"] == ev.MODEL_REQUEST_START)
    return dict(first.get("repository") or {})


@contextlib.asynccontextmanager
async def _open_cluster() -> AsyncIterator[tuple[Cluster, Client, str]]:
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    try:
        repository = Repository(root / "app")
        await asyncio.to_thread(repository.make, hostile_repository.hostile_files(_UNUSED_URL), {})
        async with (
            open_cluster(environment={"FOOTPLATE_PROJECTS_ROOT": str(root)}) as cluster,
            Client(cluster) as client,
        ):
            writes = [tool("Bash", {"command": hostile_repository.self_writing_command(_UNUSED_URL)})]
            await cluster.model.install(_WRITES, replies(writes, [text("Written.")]))
            await cluster.model.install(_SHORT, replies([tool("Bash", {"command": "true"})], [text("Short.")]))
            yield cluster, client, repository.commit
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
