"""A hook that fails in any way denies the call in time, and the user and the model see the reason."""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2

from bench.prove.figure import Figure
from bench.support import environment_backends
from bench.support.clients import Client, raw_client
from bench.support.cluster import Cluster, open_cluster
from bench.support.crash import interrupted_turn
from footplate.domain.json import Json
from footplate.domain.sessions import events
from footplate.testing import replies, text, tool
from footplate.testing.faulty_hooks import HookServer, install_faulty_hooks, start_hook_server

_TIMEOUT_SECONDS: Final = 3
_LONG_TIMEOUT_SECONDS: Final = 60
"""The timeout of hooks that do not hang: so long that it never ends them, even on a slow machine."""
_SLACK_SECONDS: Final = 30.0
"""Seconds that a turn may take in addition to its hook, on a busy machine."""
_MEMORY: Final = "1GiB"
_SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
_INVALID_OUTPUT: Final = json.dumps({"hookSpecificOutput": {"permissionDecision": "perhaps"}})
_COMMANDS: Final = {
    "hangs": ("sleep 600", "did not respond within"),
    "hangs with a child": ("sleep 600 & sleep 600", "did not respond within"),
    "crashes": ("exit 7", "failed with exit code 7"),
    "is not there": ("no-such-program", "failed with exit code 127"),
    "floods": ("yes '{' | head -c 30000000", "too large"),
    "floods its errors": ("yes | head -c 50000000 >&2; exit 2", ""),
    "returns garbage": ("echo '{garbage'", "not valid"),
    "returns no text": ("printf '{\\377'", "not valid"),
    "says what there is not": (f"echo '{_INVALID_OUTPUT}'", "perhaps"),
    "is killed": ("kill -9 $$", ""),
    "eats memory": ("tail /dev/zero", "memory"),
    "says no": ("echo 'not here' >&2; exit 2", "not here"),
}
_HTTP_RESPONSES: Final[Mapping[str, tuple[bytes | None, str]]] = {
    "hangs": (None, "did not respond within"),
    "crashes": (b"", "request to the hook failed"),
    "fails": (b"HTTP/1.1 500 Oops\r\ncontent-length: 2\r\n\r\n{}", "HTTP status 500"),
    "leads elsewhere": (b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n", "HTTP status 302"),
    "floods": (b"HTTP/1.1 200 OK\r\n\r\n", "too large"),
    "returns garbage": (b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{garbage", "not valid"),
    "returns words": (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes", "not a JSON object"),
    "is killed": (b'HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"decision":', "request to the hook failed"),
}
_FUNCTIONS: Final = {
    "hangs": "did not respond within",
    "crashes": "out of order",
    "exits": "SystemExit",
    "killed": "SIGKILL",
    "floods": "too large",
    "chatters": "too large",
    "eats": "MemoryError",
    "garbage": "TypeError",
    "words": "not a JSON object",
}
_QUICK: Final = {
    "command": ("hangs", "eats memory"),
    "http": ("returns garbage",),
    "python": ("killed",),
}
_HARNESSES: Final = {"native": "bash", "claude": "Bash"}


@dataclass(slots=True)
class _HookRun:
    cluster: Cluster
    client: Client
    http: httpx2.AsyncClient
    server: HookServer
    faults: list[str] = field(default_factory=list)
    cases: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_HARNESSES, 0))
    kinds: dict[str, int] = field(default_factory=dict)
    slowest: float = 0.0

    async def run_both_harnesses(self, kind: str, way: str, reason: str, hook: Mapping[str, Any]) -> None:
        """Sets the hook for the organisation, because levels below a project cannot name a server."""
        seconds = _TIMEOUT_SECONDS if way.startswith("hangs") else _LONG_TIMEOUT_SECONDS
        group = {"matcher": "Bash", "hooks": [{"type": kind, "timeout": seconds, **hook}]}
        response = await self.http.post("/v1/policies", json={"permissions": {"hooks": {"PreToolUse": [group]}}})
        if response.status_code != httpx2.codes.OK:
            raise RuntimeError(f"{kind}, {way}: {response.text}")
        await asyncio.gather(*(self._run_case(harness, f"{harness}, {kind}, {way}", reason) for harness in _HARNESSES))
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    async def _run_case(self, harness: str, case: str, reason: str) -> None:
        agent = await self.client.agent(extra_body={"harness": harness})
        session_id = await self.client.session(agent)
        began = time.monotonic()
        received = await self.client.run_turn(session_id, f"Go. [[script:{harness}]]", patience=150)
        took = time.monotonic() - began
        self.slowest = max(self.slowest, took)
        self.cases[harness] += 1
        found = _find_faults(received, reason)
        if took > _TIMEOUT_SECONDS + _SLACK_SECONDS:
            found.append(f"took {took:.0f} s")
        if lines := interrupted_turn.read_lines(self.cluster, session_id):
            found.append(f"the call was made: {lines}")
        trail = await _list_audit_entries(self, session_id)
        if [entry["outcome"] for entry in trail] != ["deny"]:
            found.append(f"the audit trail has {str(trail)[:300]}")
        self.faults += [f"{case}: {fault}" for fault in found]


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    async with _open_run() as run:
        for way, (command, reason) in _choose_ways("command", _COMMANDS, quick=quick).items():
            await run.run_both_harnesses("command", way, reason, {"command": command})
        for way, (response, reason) in _choose_ways("http", _HTTP_RESPONSES, quick=quick).items():
            run.server.response, run.server.floods = response, way == "floods"
            await run.run_both_harnesses("http", way, reason, {"url": run.server.url})
        for way, reason in _choose_ways("python", _FUNCTIONS, quick=quick).items():
            await run.run_both_harnesses("python", way, reason, {"name": way})
        prompts = await _check_prompts_are_stopped(run, max_hooks=1 if quick else None)
        run.faults += await _check_silent_hooks(run) + await _check_notifications(run)
    kinds = ", ".join(f"{kind} {number}" for kind, number in run.kinds.items())
    calls = sum(run.cases.values()) - prompts
    headline = f"{calls} calls behind faulty hooks: all denied within {run.slowest:.1f} s and audited"
    summary = (
        f"{calls} calls behind hooks that hang, crash, flood, return garbage, use up memory or are killed (ways: "
        f"{kinds}), `native` and `claude`: none was made; each was denied within {run.slowest:.1f} s of the turn's "
        f"start (the timeout of hooks that hang is {_TIMEOUT_SECONDS} s), with a reason and an audit "
        f"entry; {prompts} prompts "
        "behind failing hooks did not reach a model; hooks without output let all calls through"
    )
    if run.faults:
        headline = f"{calls} calls behind faulty hooks: {len(run.faults)} faults"
        summary = f"{len(run.faults)} faults, the first: {run.faults[0]}"
    details: dict[str, Json] = {"faults": [*run.faults], "harnesses": {**run.cases}, "ways": {**run.kinds}}
    return Figure(headline=headline, summary=summary, holds=not run.faults, details=details)


@asynccontextmanager
async def _open_run() -> AsyncIterator[_HookRun]:
    with tempfile.TemporaryDirectory(prefix="footplate-hooks-") as directory:
        install_faulty_hooks(Path(directory) / "site")
        async with (
            environment_backends.backend_settings(environment_backends.default_backend()) as settings,
            start_hook_server() as server,
        ):
            more = {
                "FOOTPLATE_HOOK_HOSTS": f"127.0.0.1:{server.port}",
                "FOOTPLATE_HOOK_SECRET": _SECRET,
                "FOOTPLATE_SANDBOX_MEMORY": _MEMORY,
                "PYTHONPATH": f"{directory}/site",
            }
            async with (
                open_cluster(environment={**settings, **more}) as cluster,
                Client(cluster) as client,
                raw_client(cluster) as http,
            ):
                for harness, name in _HARNESSES.items():
                    call = tool(name, {"command": "echo x >> lines"})
                    await cluster.model.install(harness, replies([call], [text("Done.")]))
                yield _HookRun(cluster, client, http, server)


def _choose_ways(kind: str, ways: Mapping[str, Any], *, quick: bool) -> Mapping[str, Any]:
    return {way: ways[way] for way in _QUICK[kind]} if quick else ways


def _find_faults(received: list[dict[str, Any]], reason: str) -> list[str]:
    uses = [event for event in received if event["type"] == events.AGENT_TOOL_USE]
    results = [event for event in received if event["type"] == events.AGENT_TOOL_RESULT]
    if [use["evaluated_permission"] for use in uses] != ["deny"] or len(results) != 1:
        return [f"{len(uses)} calls, {len(results)} results: {uses}"]
    reported_reason = str(uses[0].get("permission", {}).get("reason"))
    faults = (
        [] if reported_reason and reason in reported_reason else [f"the reason is {reported_reason!r}, not {reason!r}"]
    )
    if "a hook of the organisation" not in str(results[0]["content"]):
        faults.append(f"the model saw {results[0]['content']}")
    return faults


async def _set_policy(run: _HookRun, permissions: Mapping[str, Any]) -> None:
    (await run.http.post("/v1/policies", json={"permissions": permissions})).raise_for_status()


async def _check_prompts_are_stopped(run: _HookRun, max_hooks: int | None) -> int:
    """Sets a failing hook of each kind before prompts; returns the number of stopped prompts."""
    run.server.response, run.server.floods = _HTTP_RESPONSES["fails"][0], False
    hooks = (
        {"type": "command", "command": "exit 7"},
        {"type": "http", "url": run.server.url},
        {"type": "python", "name": "killed"},
    )
    stopped = 0
    for hook in hooks[:max_hooks]:
        await _set_policy(run, {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}})
        found = await asyncio.gather(*(_run_turn(run, harness) for harness in _HARNESSES))
        for harness, received in zip(_HARNESSES, found, strict=True):
            types = [event["type"] for event in received]
            reasons = [event["error"]["message"] for event in received if event["type"] == events.SESSION_ERROR]
            if events.AGENT_TOOL_USE in types or events.AGENT_MESSAGE in types or "a hook of the" not in str(reasons):
                run.faults.append(f"{harness}, {hook['type']}: a prompt passed a hook that failed: {types}, {reasons}")
            run.cases[harness] += 1
            stopped += 1
    return stopped


async def _run_turn(run: _HookRun, harness: str) -> list[dict[str, Any]]:
    session_id = await run.client.session(await run.client.agent(extra_body={"harness": harness}))
    return await run.client.run_turn(session_id, f"Go. [[script:{harness}]]", patience=150)


async def _check_silent_hooks(run: _HookRun) -> list[str]:
    """Checks that hooks without output let all calls through: the others were denied because of their faults."""
    run.server.set_response({})
    hooks = [
        {"type": "command", "command": "cat > /dev/null"},
        {"type": "http", "url": run.server.url},
        {"type": "python", "name": "silent"},
    ]
    hook_events = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    await _set_policy(run, {"hooks": {hook_event: [{"hooks": hooks}] for hook_event in hook_events}})
    faults = []
    for harness in _HARNESSES:
        session_id = await run.client.session(await run.client.agent(extra_body={"harness": harness}))
        received = await run.client.run_turn(session_id, f"Go. [[script:{harness}]]", patience=150)
        made = [event["evaluated_permission"] for event in received if event["type"] == events.AGENT_TOOL_USE]
        hook_outcomes = [
            (entry["content"]["hook_event"], entry["outcome"]) for entry in await _list_audit_entries(run, session_id)
        ]
        expected = [(moment, "none") for moment in hook_events for _ in hooks]
        if (
            made != ["allow"]
            or hook_outcomes != expected
            or len(interrupted_turn.read_lines(run.cluster, session_id)) != 1
        ):
            faults.append(f"{harness}, hooks without output: {made}, {hook_outcomes}")
    return faults


async def _check_notifications(run: _HookRun) -> list[str]:
    """Checks that a notification hook runs once a turn waits for an approval."""
    notice = [{"matcher": "permission_prompt", "hooks": [{"type": "python", "name": "silent"}]}]
    await _set_policy(run, {"ask": ["Bash"], "hooks": {"Notification": notice}})
    faults = []
    for harness in _HARNESSES:
        session_id = await run.client.session(await run.client.agent(extra_body={"harness": harness}))
        await run.client.run_turn(session_id, f"Go. [[script:{harness}]]", patience=150)
        hook_events = [entry["content"]["hook_event"] for entry in await _list_audit_entries(run, session_id)]
        if hook_events != ["Notification"]:
            faults.append(f"{harness}: the hooks of a waiting approval are {hook_events}")
    return faults


async def _list_audit_entries(run: _HookRun, session_id: str) -> list[dict[str, Any]]:
    query: dict[str, str | int] = {"session_id": session_id, "kind": "hook", "order": "asc", "limit": 100}
    found: list[dict[str, Any]] = (await run.http.get("/v1/audit", params=query)).json()["data"]
    return found
