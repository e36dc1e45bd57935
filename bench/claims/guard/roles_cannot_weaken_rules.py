"""A key without the required role cannot weaken a project's rules by any route, and every attempt is audited.

The routes come from the server's own OpenAPI document: a route that is added later has to be classified here, or the
claim fails. After each attempt, a denied command is tried in the session that the attempt created and in others of the
same project.
"""

import asyncio
import itertools
import json
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx2

from bench.prove.figure import Figure, require
from bench.support import environment_backends
from bench.support.clients import TOOLSET, Client, raw_client
from bench.support.cluster import Cluster, open_cluster
from bench.support.nested_references import SKIPPED_STEP
from bench.support.openapi import OpenApiDocument
from bench.support.roles.rule_weakening_attempts import (
    ATTEMPTS_BY_ROUTE,
    DENIED_COMMAND,
    HARMLESS_ROUTES,
    RULED_PROJECT_PATH,
    RULES,
    STEP_ATTEMPTS,
    Attempt,
    AttemptSetup,
    find_unclassified_routes,
)
from footplate import wiring
from footplate.client.webhooks import sign_delivery
from footplate.config import Settings
from footplate.domain.json import Json
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

_ROLES_WITHOUT_ACCESS: Final = ("member", "approver", "Admin", "policy-admin")
"""Roles that may not write rules: two that exist, and two that are named almost like those which may."""
_ROLES_WITH_ACCESS: Final = ("admin", "policy_admin")
_QUICK: Final = {
    "POST /v1/projects": ("again_without_rules",),
    "POST /v1/projects/{project_id}": ("trust", "no_rules"),
    "POST /v1/projects/{project_id}/archive": ("plain",),
    "POST /v1/sessions": ("directory",),
    "POST /v1/sessions/{session_id}": ("hooks",),
    "POST /v1/sessions/{session_id}/events": ("edited",),
    "POST /v1/policies": ("rules",),
}
_AUDITED_KINDS: Final = frozenset({"change", "policy", "answer"})


@dataclass(slots=True)
class _AttackRun:
    cluster: Cluster
    admin: httpx2.AsyncClient
    client: Client
    directory: Path
    project_id: str = ""
    plain_project_id: str = ""
    attempts: int = 0
    refused: int = 0
    invalid: int = 0
    """Refused with 400 for every role; only these are not in the audit trail."""
    tried: int = 0
    faults: list[str] = field(default_factory=list)

    async def create(self, path: str, http: httpx2.AsyncClient | None = None, /, **body: Any) -> dict[str, Any]:
        response = await (http or self.admin).post(path, json=body)
        require(holds=response.status_code == httpx2.codes.OK, otherwise=f"{path}: {response.text}")
        return dict(response.json())

    async def create_setup(self, operation: str) -> AttemptSetup:
        tag = f"t{secrets.token_hex(4)}"
        agent = await self.create("/v1/agents", name=tag, model="claude-sonnet-4-5", tools=[TOOLSET])
        other = await self.create("/v1/agents", name=tag, model="claude-sonnet-4-5", tools=[TOOLSET], harness="claude")
        environment = await self.create("/v1/environments", name=f"e-{tag}")
        projects = [self.plain_project_id, self.project_id]
        workspace = await self.create("/v1/workspaces", name=f"w-{tag}", project_ids=projects)
        ids = {
            "project_id": self.project_id,
            "plain_project_id": self.plain_project_id,
            "agent_id": agent["id"],
            "claude_agent_id": other["id"],
            "environment_id": environment["id"],
            "workspace_id": workspace["id"],
            "call_id": "sevt_none",
        }
        session = await self.create(
            "/v1/sessions", agent=agent["id"], environment_id=environment["id"], project_ids=[self.project_id]
        )
        ids["session_id"] = session["id"]
        if "{deployment_id}" in operation:
            work = {"environment_id": environment["id"], "steps": [SKIPPED_STEP]}
            ids["deployment_id"] = (await self.create("/v1/deployments", name=tag, agent=agent["id"], **work))["id"]
        if "{trigger_id}" in operation:
            work = {"environment_id": environment["id"], "steps": [SKIPPED_STEP]}
            ids["trigger_id"] = (await self.create("/v1/triggers", name=tag, agent=agent["id"], **work))["id"]
        if operation.endswith("/events"):
            await self.create(f"/v1/sessions/{session['id']}", permissions={"ask": ["Bash(echo *)"]})
            received = await self.client.run_turn(session["id"], "Go. [[script:asks]]")
            ids["call_id"] = received[-1]["stop_reason"]["event_ids"][0]
        elif operation.endswith("/fork"):
            await self.client.run_turn(session["id"], "Go. [[script:hello]]")
        lines = await self._read_transcript(other["id"]) if operation.endswith("/import") else ()
        return AttemptSetup(tag=tag, directory=str(self.directory), ids=ids, transcript=lines)

    async def _read_transcript(self, agent_id: str) -> Sequence[Mapping[str, Any]]:
        session = await self.client.session(agent_id)
        await self.client.run_turn(session, "Go. [[script:hello]]", patience=120)
        _, *lines, _ = (await self.admin.get(f"/v1/sessions/{session}/transcript")).text.splitlines()
        return [{"line": json.loads(line)["line"]} for line in lines]


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    async with _open_run() as run:
        document = (await run.admin.get("/openapi.json")).json()
        operations = [str(one) for one in OpenApiDocument(document).operations()]
        run.faults += [
            f"{one} is not classified: can it change which rules apply?" for one in find_unclassified_routes(operations)
        ]
        for role in _ROLES_WITHOUT_ACCESS[:1] if quick else _ROLES_WITHOUT_ACCESS:
            await _attack_as(run, role, quick=quick)
            await _attack_with_steps(run, role)
        for role in _ROLES_WITH_ACCESS[:1] if quick else _ROLES_WITH_ACCESS:
            await _check_role_has_effect(run, role)
        verified = (await run.admin.get("/v1/audit/verify")).json()
        run.faults += [f"the audit trail: {fault}" for fault in verified["faults"]]
    roles = ", ".join(_ROLES_WITHOUT_ACCESS[:1] if quick else _ROLES_WITHOUT_ACCESS)
    headline = f"{run.attempts} attempts without the role: none weakened the rules"
    summary = (
        f"{len(ATTEMPTS_BY_ROUTE) + len(HARMLESS_ROUTES)} writing routes, {len(HARMLESS_ROUTES)} of which "
        f"cannot change rules; "
        f"{run.attempts} attempts as {roles}: {run.refused} were refused with 403, none weakened the rules, which "
        f"denied the command in {run.tried} sessions afterwards; every attempt is in the audit trail, except "
        f"{run.invalid} invalid requests (400); with the role the same requests take effect"
    )
    if run.faults:
        headline = f"{run.attempts} attempts without the role: {len(run.faults)} faults"
        summary = f"{len(run.faults)} faults, the first: {run.faults[0]}"
    details: dict[str, Json] = {
        "faults": [*run.faults],
        "routes": [*ATTEMPTS_BY_ROUTE],
        "harmless": {**HARMLESS_ROUTES},
    }
    return Figure(headline=headline, summary=summary, holds=not run.faults, details=details)


@asynccontextmanager
async def _open_run() -> AsyncIterator[_AttackRun]:
    with tempfile.TemporaryDirectory(prefix="footplate-roles-") as made:
        root = await asyncio.to_thread(_prepare, made)
        more = {
            "FOOTPLATE_PROJECTS_ROOT": str(root),
            "FOOTPLATE_NAMED_ROOTS": json.dumps({wiring.DEFAULT_ORGANISATION: [str(root)]}),
        }
        async with (
            environment_backends.backend_settings(environment_backends.default_backend()) as settings,
            open_cluster(environment={**settings, **more}) as cluster,
            Client(cluster) as client,
            raw_client(cluster) as admin,
        ):
            for name, program in (("denied", "bash"), ("denied-claude", "Bash")):
                await cluster.model.install(
                    name, replies([tool(program, {"command": DENIED_COMMAND})], [text("Done.")])
                )
            asks = replies(
                [tool("bash", {"command": "echo a"})], [tool("bash", {"command": DENIED_COMMAND})], [text("Done.")]
            )
            await cluster.model.install("asks", asks)
            await cluster.model.install("hello", replies([text("Hello.")]))
            run = _AttackRun(cluster, admin, client, root / RULED_PROJECT_PATH)
            run.project_id = (await run.create("/v1/projects", path=RULED_PROJECT_PATH, permissions=RULES))["id"]
            run.plain_project_id = (await run.create("/v1/projects", path="plain"))["id"]
            # The project's first session creates its directory.
            session = await client.session(extra_body={"project_ids": [run.project_id]})
            await client.run_turn(session, "Go. [[script:hello]]")
            yield run


def _prepare(directory: str) -> Path:
    root = Path(directory).resolve()
    root.chmod(0o755)
    return root


async def _attack_as(run: _AttackRun, role: str, *, quick: bool) -> None:
    secret, key_id = await _create_key(run.cluster, role)
    async with raw_client(run.cluster, key=secret) as http, Client(run.cluster, key=secret) as client:
        for operation, build in ATTEMPTS_BY_ROUTE.items():
            names = [attempt.name for attempt in build(_EMPTY_SETUP)]
            for name in _QUICK.get(operation, ()) if quick else names:
                setup = await run.create_setup(operation)
                attempt = next(one for one in build(setup) if one.name == name)
                case = f"{role}: {operation}, {name}"
                try:
                    run.faults += [
                        f"{case}: {fault}"
                        for fault in await _make_attempt(run, http, client, key_id, operation, attempt, setup)
                    ]
                except (AssertionError, TimeoutError) as error:
                    run.faults.append(f"{case}: {error!r}")


async def _attack_with_steps(run: _AttackRun, role: str) -> None:
    """Tries the denied command as a step: at once, by editing another step, and through a reference to a result."""
    secret, _ = await _create_key(run.cluster, role)
    async with raw_client(run.cluster, key=secret) as http, Client(run.cluster, key=secret) as client:
        for name, (added, edited) in STEP_ATTEMPTS.items():
            session_id = await run.client.session(extra_body={"project_ids": [run.project_id]})
            path = f"/v1/sessions/{session_id}"
            run.attempts += 1
            if edited is not None:
                await run.create(f"{path}/pause")
            response = await http.post(f"{path}/steps", json={"steps": added})
            if response.status_code == httpx2.codes.FORBIDDEN:
                run.refused += 1
                continue
            if name == "program" and response.status_code == httpx2.codes.BAD_REQUEST:
                run.invalid += 1  # a result is never the name of a program
                continue
            require(holds=response.status_code == httpx2.codes.OK, otherwise=f"{name}: {response.text}")
            step_id = response.json()["data"][-1]["id"]
            if edited is not None:
                await run.create(f"{path}/steps/{step_id}", http, **edited)
                await run.create(f"{path}/play")
            run.faults += [f"{role}: step, {name}: {fault}" for fault in await _check_step(run, client, path, step_id)]
            run.tried += 1


async def _check_step(run: _AttackRun, client: Client, path: str, step_id: str) -> list[str]:
    """Checks that the last step ended as denied, and that no command ran that the rules deny."""

    async def has_ended() -> bool:
        return (await run.admin.get(f"{path}/steps/{step_id}")).json()["state"] not in {"pending", "running"}

    require(holds=await wait_until(has_ended, 60), otherwise=f"{step_id} does not end")
    state = (await run.admin.get(f"{path}/steps/{step_id}")).json()["state"]
    received = await client.events(path.rsplit("/", 1)[1])
    uses = [event for event in received if event["type"] == events.AGENT_TOOL_USE]
    ran = [use for use in uses if "touch" in use["input"]["command"] and use["evaluated_permission"] != "deny"]
    return [f"the call was made: {use}" for use in ran] + ([] if state == "failed" else [f"the step is {state}"])


_EMPTY_SETUP: Final = AttemptSetup(
    tag="t",
    directory="/",
    ids=dict.fromkeys(
        (
            *("project_id", "plain_project_id", "agent_id", "claude_agent_id", "environment_id", "workspace_id"),
            *("session_id", "call_id", "deployment_id", "trigger_id"),
        ),
        "",
    ),
)


async def _make_attempt(
    run: _AttackRun,
    http: httpx2.AsyncClient,
    client: Client,
    key_id: str,
    operation: str,
    attempt: Attempt,
    setup: AttemptSetup,
) -> list[str]:
    method, _, template = operation.partition(" ")
    path = template.format_map(setup.ids)
    before = await _newest_audit_ids(run)
    headers = {"content-type": "application/json"}
    response = await http.request(method, path, content=attempt.content, headers=headers)
    run.attempts += 1
    status = response.status_code
    run.invalid += attempt.is_invalid
    if attempt.is_invalid:
        return [] if status == httpx2.codes.BAD_REQUEST else [f"returned {status}: {response.text[:200]}"]
    if status not in {httpx2.codes.OK, httpx2.codes.FORBIDDEN}:
        return [f"returned {status}: {response.text[:200]}"]
    run.refused += status == httpx2.codes.FORBIDDEN
    faults = await _check_audit(run, key_id, path, before, refused=status == httpx2.codes.FORBIDDEN)
    body = response.json()
    faults += await _check_denied_everywhere(
        run, client, operation, attempt, setup, body if status == httpx2.codes.OK else {}
    )
    now = (await run.admin.get(f"/v1/projects/{run.project_id}")).json()
    if (now["permissions"], now["trust"], now["archived_at"]) != (RULES, "nothing", None):
        faults.append(f"the project is now {now}")
    if body.get("type") == "project" and body["id"] != run.project_id:
        await run.create(f"/v1/projects/{body['id']}/archive")
    return faults


async def _newest_audit_ids(run: _AttackRun) -> set[str]:
    return {entry["id"] for entry in (await run.admin.get("/v1/audit", params={"limit": 100})).json()["data"]}


async def _check_audit(run: _AttackRun, key_id: str, path: str, before: set[str], *, refused: bool) -> list[str]:
    entries = (await run.admin.get("/v1/audit", params={"limit": 100})).json()["data"]
    new = [entry for entry in entries if entry["id"] not in before and entry["principal"] == key_id]
    if refused:
        found = any(entry["kind"] == "refusal" and entry["content"]["path"] == path for entry in new)
    else:
        found = any(entry["kind"] in _AUDITED_KINDS for entry in new)
    return [] if found else [f"is not in the audit trail: {[entry['kind'] for entry in new]}"]


async def _check_denied_everywhere(
    run: _AttackRun, client: Client, operation: str, attempt: Attempt, setup: AttemptSetup, created: Mapping[str, Any]
) -> list[str]:
    """Runs the denied command in a new session of the project, and in whatever the attempt created."""
    agent, environment = await client.agent(), await client.environment()
    wanted: list[Mapping[str, Any]] = [{"project_ids": [run.project_id]}]
    if created.get("type") == "project":
        wanted.append({"project_ids": [created["id"]]})
    if attempt.in_workspace:
        wanted.append({"workspace_id": created["id"]})
    if created.get("type") == "agent" and created["archived_at"] is None:
        agent = created["id"]
    if created.get("type") == "environment" and created["archived_at"] is None:
        environment = created["id"]
    sessions = [await client.session(agent, environment, extra_body=body) for body in wanted]
    if created.get("type") == "session":
        sessions.append(created["id"])
    if created.get("type") == "deployment":
        sessions.append((await run.create(f"/v1/deployments/{created['id']}/run"))["session_id"])
    if created.get("type") == "trigger":
        path = f"/v1/triggers/{created['id']}"
        secret = (await run.create(f"{path}/rotate_secret"))["secret"]
        delivered = await run.admin.post(path, content="{}", headers=sign_delivery(secret, setup.tag, "{}"))
        sessions.append(delivered.raise_for_status().json()["session_id"])
    found = await asyncio.gather(
        *(
            _run_denied(client, session, is_claude="import" in operation and session == created.get("id"))
            for session in sessions
        )
    )
    if operation.endswith("/events"):
        found.append(await _check_waiting_turn(client, setup.ids["session_id"]))
    run.tried += len(found)
    return list(itertools.chain.from_iterable(found))


async def _run_denied(client: Client, session_id: str, *, is_claude: bool) -> list[str]:
    script = "denied-claude" if is_claude else "denied"
    return _find_faults(await client.run_turn(session_id, f"Go. [[script:{script}]]", patience=120))


async def _check_waiting_turn(client: Client, session_id: str) -> list[str]:
    """Judges the turn that waited for an approval, once the session is idle."""

    async def is_idle() -> bool:
        return (await client.sdk.beta.sessions.retrieve(session_id)).status == "idle"

    require(holds=await wait_until(is_idle, 60), otherwise=f"{session_id} does not become idle")
    return _find_faults(await client.events(session_id))


def _find_faults(received: Sequence[Mapping[str, Any]]) -> list[str]:
    """Checks that the rule denied the command, and that no other call ran it."""
    uses = [event for event in received if event["type"] == events.AGENT_TOOL_USE]
    results = {event["tool_use_id"]: event for event in received if event["type"] == events.AGENT_TOOL_RESULT}
    faults = [
        f"the call was made: {use}"
        for use in uses
        if use["input"].get("command") == DENIED_COMMAND and use["evaluated_permission"] != "deny"
    ]
    if not any(use["evaluated_permission"] == "deny" for use in uses) and not _was_edited(results.values()):
        faults.append(f"nothing was denied: {[event['type'] for event in received]}")
    return faults


def _was_edited(results: Any) -> bool:
    """Whether a result shows that the rule denied an approved call whose input was edited."""
    return any("Denied by the rule" in json.dumps(result["content"]) for result in results)


async def _check_role_has_effect(run: _AttackRun, role: str) -> None:
    """Checks that with the role the same requests take effect: the claim would detect a missing rule."""
    secret, _ = await _create_key(run.cluster, role)
    async with raw_client(run.cluster, key=secret) as http, Client(run.cluster, key=secret) as client:
        project_path = f"/v1/projects/{run.project_id}"
        await run.create(project_path, http, permissions=None)
        session = await client.session(extra_body={"project_ids": [run.project_id]})
        if not await _run_denied(client, session, is_claude=False):
            run.faults.append(f"{role}: the command is denied although no rule denies it")
        await run.create(project_path, http, permissions=RULES)
        await run.create(f"{project_path}/archive", http)
        run.project_id = (await run.create("/v1/projects", http, path=RULED_PROJECT_PATH))["id"]
        session = await client.session(extra_body={"project_ids": [run.project_id]})
        run.faults += [f"{role}, again: {fault}" for fault in await _run_denied(client, session, is_claude=False)]


async def _create_key(cluster: Cluster, role: str) -> tuple[str, str]:
    """Creates a key with the role; returns it and its id."""
    settings = Settings(database_url=cluster.settings.database_url)
    name = f"{role}-{secrets.token_hex(4)}"
    secret = await wiring.create_key(settings, wiring.DEFAULT_ORGANISATION, name, [role])
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        return secret, str(await connection.fetchval("select id from api_keys where name = $1", name))
    finally:
        await connection.close()
