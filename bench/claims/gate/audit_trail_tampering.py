"""Tampering with the audit trail is detected: changed, removed or reordered entries are found, erasure stays valid.

Calls of both harnesses are approved and made. Then an owner of the database changes the trail without the server, one
change at a time, and reverts it.
"""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import httpx2

from bench.prove.figure import Figure, require
from bench.support.clients import TOOLSET, Client, raw_client
from bench.support.cluster import Cluster, open_cluster
from footplate.domain.json import Json
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

_SETTINGS: Final = {"FOOTPLATE_SWEEP_INTERVAL": "1"}
_PATIENCE: Final = 60.0
_TOOLS: Final = {"native": ("bash", "read"), "claude": ("Bash", "Read")}
_COLUMNS: Final = (
    *("kind", "session", "turn", "event", "principal", "outcome", "tool", "layer", "input_hash", "content_hash"),
    *("id", "organisation"),
)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    sessions = 2 if quick else 40
    async with (
        open_cluster(environment=_SETTINGS) as cluster,
        Client(cluster) as client,
        raw_client(cluster) as http,
    ):
        made = await _create_sessions(client, http, sessions, cluster)
        connection = await asyncpg.connect(cluster.settings.database_url)
        try:
            trail = _Trail(connection, http, cluster)
            before = await trail.verify_when_sealed()
            tried = await trail.tamper(quick=quick)
            await client.sdk.beta.sessions.delete(made[0])
            after = await trail.verify_when_sealed()
            erased = await connection.fetchval(
                "select count(*) from audit where session = $1 and content is not null", made[0]
            )
        finally:
            await connection.close()
    faults = [f"not found: {what}" for what, found in tried.items() if not found]
    faults += [f"after a deletion: {fault}" for fault in after["faults"]]
    if erased:
        faults.append(f"{erased} entries of a deleted session still have their content")
    headline = f"{len(tried)} changes to {before['entries']} entries: all found, no false alarm"
    summary = (
        f"{before['entries']} entries of sessions of `native` and `claude` in {before['batches']} batches; "
        f"{len(tried)} changes without the server (each field, removals, another order): all found, and no false "
        "alarm; the deletion of a session erased the content of its entries and left the chain valid"
    )
    if faults:
        headline = f"{len(tried)} changes to {before['entries']} entries: {len(faults)} faults"
        summary = f"{len(faults)} faults, the first: {faults[0]}"
    harnesses: dict[str, Json] = {harness: sessions // len(_TOOLS) for harness in _TOOLS}
    details: dict[str, Json] = {"faults": [*faults], "tried": [*tried], "harnesses": harnesses}
    return Figure(headline=headline, summary=summary, holds=not faults, details=details)


async def _create_sessions(client: Client, http: httpx2.AsyncClient, sessions: int, cluster: Cluster) -> list[str]:
    """Creates sessions with an approved call and one that needs no approval, and changes the rules."""
    asking = {**TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
    agents = {}
    for harness, (command, reading) in _TOOLS.items():
        calls = [tool(command, {"command": "echo a"}), tool(reading, {"file_path": "x"})]
        await cluster.model.install(f"asks-{harness}", replies(calls, [text("Done.")]))
        agents[harness] = await client.agent(tools=[asking], extra_body={"harness": harness})
    made = []
    for number, harness in zip(range(sessions), itertools.cycle(_TOOLS), strict=False):
        rules = {"permissions": {"deny": [f"Bash(never-{number} *)"], "allow": ["Read"]}}
        (await http.post("/v1/policies", json=rules)).raise_for_status()
        session_id = await client.session(agents[harness])
        received = await client.run_turn(session_id, f"Go. [[script:asks-{harness}]]")
        waiting = received[-1]["stop_reason"]["event_ids"]
        async with client.stream(session_id) as stream:
            decision = {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": waiting[0], "result": "allow"}
            await client.send(session_id, decision)
            await stream.until_idle()
        made.append(session_id)
    return made


class _Trail:
    def __init__(self, connection: Any, http: httpx2.AsyncClient, cluster: Cluster) -> None:
        self._connection = connection
        self._http = http
        self._cluster = cluster
        self._checked_changes: set[str] = set()

    async def verify_when_sealed(self) -> dict[str, Any]:
        """Returns the server's verification once all entries are sealed."""
        last: dict[str, Any] = {}

        async def sealed() -> bool:
            last.update((await self._http.get("/v1/audit/verify")).json())
            return bool(last["unsealed"] == 0 and last["batches"])

        require(holds=await wait_until(sealed, _PATIENCE), otherwise=f"entries are not sealed: {last}")
        return last

    async def tamper(self, *, quick: bool) -> dict[str, bool]:
        """Makes each change and returns whether it was found. `quick` changes one entry only."""
        found: dict[str, bool] = {}
        before = await self.verify_when_sealed()
        require(holds=not before["faults"], otherwise="there are faults before anything was changed")
        rows = [row["id"] for row in await self._connection.fetch("select id from audit order by number")]
        for target, (change, statement) in itertools.product(rows[:1] if quick else rows[::7], _CHANGES.items()):
            async with self._apply_change(statement, target) as changed:
                now = (await self._http.get("/v1/audit/verify")).json()
                # Entries cut off at the end leave no fault, but the head differs from the one noted before.
                if changed:
                    await self._check_command(expects_faults=bool(now["faults"]), change=change, quick=quick)
                    found[f"{change} of {target}"] = bool(now["faults"]) or now["head"] != before["head"]
            clean = (await self._http.get("/v1/audit/verify")).json()["faults"]
            require(holds=not clean, otherwise=f"there are faults after the change was reverted: {clean}")
        return found

    async def _check_command(self, *, expects_faults: bool, change: str, quick: bool) -> None:
        """Checks that `footplate audit verify` agrees, once for each kind of change; in a sample once."""
        if change in self._checked_changes or (self._checked_changes and quick):
            return
        self._checked_changes.add(change)
        client_settings = {"FOOTPLATE_API_KEY": self._cluster.key, "FOOTPLATE_BASE_URL": self._cluster.base_urls[0]}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "footplate", "audit", "verify"),
            env={**self._cluster.environment(), **client_settings},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed = (await process.communicate())[0].decode()
        require(
            holds=process.returncode == int(expects_faults),
            otherwise=f"{change}: `footplate audit verify` printed {printed}",
        )

    @asynccontextmanager
    async def _apply_change(self, statement: str, target: str) -> AsyncIterator[bool]:
        """Commits a change, so that the server sees it, and restores the tables afterwards.

        Yields False if there was nothing to change, such as the order of a single entry.
        """
        tables = ("audit", "audit_batches")
        await self._connection.execute("set session_replication_role = 'replica'")
        for table in tables:
            await self._connection.execute(f"create temp table kept_{table} as select * from {table}")
        try:
            yield not (await self._connection.execute(statement, target)).endswith(" 0")
        finally:
            async with self._connection.transaction():
                for table in tables:
                    await self._connection.execute(f"delete from {table}")
                    await self._connection.execute(f"insert into {table} select * from kept_{table}")
            for table in tables:
                await self._connection.execute(f"drop table kept_{table}")


_ROW_CHANGES: Final = {
    "created_at": "update audit set created_at = created_at + interval '1 second' where id = $1",
    "content": 'update audit set content = \'{"reason": "another"}\' where id = $1',
    "removal": "delete from audit where id = $1",
    "order": """
        update audit a set number = case when a.id = t.id then o.number else t.number end
        from audit t, audit o
        where t.id = $1 and a.id in (t.id, o.id) and o.id = (
            select id from audit
            where organisation = t.organisation and batch = t.batch and id <> t.id order by number limit 1)""",
    "batch": "update audit set batch = batch + 1 where id = $1",
    "removal of its batch": "delete from audit_batches b using audit a where a.id = $1 and b.number = a.batch",
    "removal of its batch with all entries": """
        with gone as (delete from audit where batch = (select batch from audit where id = $1) returning batch)
        delete from audit_batches where number in (select batch from gone)""",
}
_CHANGES: Final = {
    **{column: f"update audit set {column} = 'x' || coalesce({column}, '') where id = $1" for column in _COLUMNS},
    **_ROW_CHANGES,
}
