"""Each key can use only the routes and commands of the published table, and a revoked key stops within 5 seconds.

The expectations come from docs/identities.md, and the routes and commands from the running server and the command line
themselves, so a new one is covered automatically or fails the claim. Keys have every role, or are expired, revoked,
replaced, of a disabled member, unknown, of another organisation, or restricted to a project. A dump of the database
contains no usable key.
"""

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure, time_limit
from bench.support import organisation_isolation
from bench.support.cluster import Cluster, open_cluster
from bench.support.command_server import CommandServer
from bench.support.openapi import OpenApiDocument
from bench.support.organisation_isolation import COMMENT, Ids, Organisation
from bench.support.roles import issued_keys, stored_secrets
from bench.support.roles.command_runs import CommandRunner
from bench.support.roles.issued_keys import EFFECT_SECONDS, IssuedKey, KeyIssuer
from bench.support.roles.key_changes import CHANGES, KeyChangeFindings, measure_change
from bench.support.roles.published_table import PublishedTable
from bench.support.roles.route_requests import RouteCaller, list_cases

_KEYS_TO_CHANGE: Final = 20
_KEYS_AT_ONCE: Final = 4
_QUICK_ROLES: Final = ("viewer", "approver", "admin")
_QUICK_COMMAND_ROLES: Final = ("viewer", "admin")
_INVALID_COMMAND_KEYS: Final = ("expired", "revoked")
_HASHES_TO_TRY: Final = 20


@dataclass(slots=True)
class _Run:
    cluster: Cluster
    team: Organisation
    stranger: Organisation
    issuer: KeyIssuer
    table: PublishedTable

    async def create_objects(self, key: IssuedKey | None = None) -> Ids:
        """Creates objects that may change. The comment belongs to the owner of the key, if its roles allow comments."""
        ids = await self.team.create_objects(turns=1)
        if key is not None:
            url = f"{self.cluster.base_urls[0]}/v1/sessions/{ids['session_id']}/comments"
            authorization = {"authorization": f"Bearer {key.secret}"}
            created = await self.team.http.post(url, json=COMMENT, headers=authorization)
            if created.is_success:
                ids = {**ids, "comment_id": created.json()["id"]}
        approval = (await self.team.http.get(f"/v1/approvals/{ids['approval_id']}")).json()
        listed = await self.team.http.get("/v1/approvals", params={"session_id": approval["session_id"]})
        others = [each["id"] for each in listed.json()["data"] if each["id"] != ids["approval_id"]]
        return {**ids, "approval_session_id": approval["session_id"], "other_approval_id": others[0]}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    table = PublishedTable.read()
    async with _open_run(table) as run:
        roles = _QUICK_ROLES if quick else [*table.roles]
        keys = await issued_keys.issue_role_keys(run.issuer, table, roles)
        invalid = await issued_keys.issue_invalid_keys(run.issuer, run.cluster.base_urls)
        foreign = IssuedKey("foreign", await run.cluster.create_key("stranger"), table.roles["admin"], is_foreign=True)
        shared = await run.create_objects()
        before = await organisation_isolation.capture_state(run.team, [shared])
        restricted = await issued_keys.issue_restricted_key(run.issuer, table, shared["project_id"])
        routes = await _call_routes(run, [*keys, *invalid, foreign, restricted], shared)
        commands = await _run_commands(run, [*keys, *invalid, foreign], shared, quick=quick)
        faults = [*routes.findings.faults, *commands.findings.faults]
        if before != await organisation_isolation.capture_state(run.team, [shared]):
            faults.append("a refused request changed an object")
        changes = await _change_keys(run, shared["session_id"], 2 if quick else _KEYS_TO_CHANGE)
        faults += [*changes.faults, *await _search_secrets(run)]
    return _figure(routes, commands, changes, faults, len(run.issuer.secrets), quick=quick)


@asynccontextmanager
async def _open_run(table: PublishedTable) -> AsyncIterator[_Run]:
    async with open_cluster(apis=2, workers=1) as cluster:
        team, stranger = [await Organisation.create(cluster, name) for name in ("team", "stranger")]
        try:
            yield _Run(cluster, team, stranger, KeyIssuer(team.http), table)
        finally:
            await team.aclose()
            await stranger.aclose()


async def _call_routes(run: _Run, keys: Sequence[IssuedKey], shared: Ids) -> RouteCaller:
    document = OpenApiDocument((await run.team.http.get("/openapi.json")).json())
    caller = RouteCaller(document, run.table, run.cluster.base_urls)
    cases = list_cases(document, run.table)
    for key in keys:
        changes = key.permissions and not (key.is_foreign or key.is_restricted)
        own = await run.create_objects(key) if changes else None
        await caller.call_all(key, cases, shared, own)
        print(f"  routes: {key.name}, {len(caller.findings.faults)} faults so far", flush=True)
    await caller.call_without_key(cases, shared)
    return caller


async def _run_commands(run: _Run, keys: Sequence[IssuedKey], shared: Ids, *, quick: bool) -> CommandRunner:
    chosen = [key for key in keys if key.permissions is not None or key.name in _INVALID_COMMAND_KEYS]
    if quick:
        chosen = [key for key in chosen if key.name in _QUICK_COMMAND_ROLES]
    directory, server = Path(tempfile.mkdtemp(prefix="footplate-roles-")), CommandServer()
    await server.start()
    runner = CommandRunner(server, run.table, run.cluster.base_urls[1], directory, run.issuer.secrets)
    try:
        for key in chosen:
            own = await run.create_objects(key) if key.permissions and not key.is_foreign else None
            await runner.run_all(key, shared, own)
            print(f"  commands: {key.name}, {len(runner.findings.faults)} faults so far", flush=True)
    finally:
        await server.stop()
        await asyncio.to_thread(shutil.rmtree, directory)
    return runner


async def _change_keys(run: _Run, session_id: str, count: int) -> KeyChangeFindings:
    findings, names = KeyChangeFindings(), itertools.cycle(CHANGES)
    pending = [next(names) for _ in range(count)]
    while pending:
        batch, pending = pending[:_KEYS_AT_ONCE], pending[_KEYS_AT_ONCE:]
        urls = run.cluster.base_urls
        await asyncio.gather(*(measure_change(findings, urls, run.issuer, session_id, name) for name in batch))
        print(f"  {findings.keys} of {count} keys changed", flush=True)
    return findings


async def _search_secrets(run: _Run) -> list[str]:
    """Searches the dump, the log files and the stored objects."""
    url, secrets = run.cluster.settings.database_url, run.issuer.secrets
    dump = await stored_secrets.dump_database(url)
    directories = [run.cluster.directory / "logs", run.cluster.directory / "data"]
    return [
        *stored_secrets.find_secrets(dump, secrets, "the dump"),
        *await asyncio.to_thread(stored_secrets.find_secrets_in_files, directories, secrets),
        *await stored_secrets.find_usable_hashes(url, run.cluster.base_urls[0], _HASHES_TO_TRY),
    ]


def _figure(
    routes: RouteCaller,
    commands: CommandRunner,
    changes: KeyChangeFindings,
    faults: list[str],
    secret_count: int,
    *,
    quick: bool,
) -> Figure:
    slowest_stream, last_request = max(changes.stream_seconds), max(changes.request_seconds)
    limit = time_limit(EFFECT_SECONDS, quick=quick)
    in_time = max(slowest_stream, last_request) <= limit
    requests, runs = routes.findings.requests, commands.findings.runs
    headline = f"{requests:,} requests, {runs} commands: as published; changed keys end within {slowest_stream:.1f} s"
    summary = (
        f"{requests} requests ({routes.findings.served} served) and {runs} commands ({commands.findings.refused} "
        f"refused): all as published, and refused ones changed nothing; after {changes.keys} changes of keys, on two "
        f"replicas, the last of {len(changes.stream_seconds)} streams ended after {slowest_stream:.2f} s and the last "
        f"accepted request was sent after {max(last_request, 0):.2f} s (limit: {EFFECT_SECONDS:.0f} s); none of "
        f"{secret_count} secrets is in a dump of the database, in log files or in stored objects"
    )
    if faults or not in_time:
        headline = f"{len(faults)} faults; changed keys end within {slowest_stream:.1f} s"
        summary = f"{summary}; the first fault: {faults[0]}" if faults else summary
    return Figure(
        headline=headline,
        summary=summary,
        holds=not faults and in_time,
        details={
            "faults": [*faults],
            "stream_seconds": [round(each, 2) for each in sorted(changes.stream_seconds)],
            "request_seconds": [round(each, 2) for each in sorted(changes.request_seconds)],
        },
    )
