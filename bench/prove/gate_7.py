"""Whatever goes wrong with a hook, it has said no, in time, and people and the model are told why."""

import itertools
import json
import time
from typing import Any, Final

import httpx2

from bench.prove import backends
from bench.prove.clients import Client, raw_client
from bench.prove.cluster import open_cluster
from bench.prove.crash import work
from bench.prove.figure import Figure
from footplate.domain import events
from footplate.domain.json import Json
from footplate.testing import replies, text, tool

_SECONDS: Final = 3
_SLACK: Final = 20.0
"""Seconds that a turn may take beside its hook, on a busy machine."""
_BAD: Final = json.dumps({"hookSpecificOutput": {"permissionDecision": "perhaps"}})
_HOOKS: Final = {
    "hangs": ("sleep 600", "did not answer within"),
    "hangs with a child": ("sleep 600 & sleep 600", "did not answer within"),
    "crashes": ("exit 7", "failed with 7"),
    "is not there": ("no-such-program", "failed with 127"),
    "floods": ("yes '{' | head -c 30000000", ""),
    "floods its errors": ("yes >&2 | head -c 1000; yes | head -c 50000000 >&2; exit 2", ""),
    "returns garbage": ("echo '{garbage'", "no answer"),
    "returns no text": ("printf '{\\377'", "no answer"),
    "says what there is not": (f"echo '{_BAD}'", "perhaps"),
    "is killed": ("kill -9 $$", ""),
    "says no": ("echo 'not here' >&2; exit 2", "not here"),
}
_QUICK: Final = ("hangs", "floods", "returns garbage", "is killed")
_HARNESSES: Final = {"native": "bash", "claude": "Bash"}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    kinds = _QUICK if quick else tuple(_HOOKS)
    faults: list[str] = []
    slowest = 0.0
    async with (
        backends.settings(backends.default()) as settings,
        open_cluster(environment=settings) as cluster,
        Client(cluster) as client,
        raw_client(cluster) as http,
    ):
        for harness, name in _HARNESSES.items():
            call = tool(name, {"command": "echo x >> lines"})
            await cluster.model.install(harness, replies([call], [text("Done.")]))
        plan = [*itertools.product(_HARNESSES, kinds)]
        for harness, kind in plan:
            agent = await client.agent(extra_body={"harness": harness, "permissions": _permissions(_HOOKS[kind][0])})
            session_id = await client.session(agent)
            began = time.monotonic()
            told = await client.run_turn(session_id, f"Go. [[script:{harness}]]", patience=120)
            took = time.monotonic() - began
            slowest = max(slowest, took)
            faults += [f"{harness}, {kind}: {fault}" for fault in _judge(told, _HOOKS[kind][1])]
            if took > _SECONDS + _SLACK:
                faults.append(f"{harness}, {kind}: took {took:.0f} s")
            if left := work.lines(cluster, session_id):
                faults.append(f"{harness}, {kind}: the call was made: {left}")
        faults += await _still_heard(client, http)
    found = (
        f"{len(plan)} calls behind hooks that fail in {len(kinds)} ways, `native` and `claude`: none was made, each "
        f"was denied within {slowest:.1f} s of a turn's beginning (the hook's limit is {_SECONDS} s) and said why"
    )
    if faults:
        found = f"{len(faults)} faults, the first: {faults[0]}"
    details: dict[str, Json] = {"faults": [*faults]}
    return Figure(text=found, holds=not faults, details=details)


def _permissions(command: str) -> dict[str, Any]:
    hook = {"type": "command", "command": command, "timeout": _SECONDS}
    return {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}


def _judge(told: list[dict[str, Any]], reason: str) -> list[str]:
    uses = [event for event in told if event["type"] == events.AGENT_TOOL_USE]
    results = [event for event in told if event["type"] == events.AGENT_TOOL_RESULT]
    if [use["evaluated_permission"] for use in uses] != ["deny"] or len(results) != 1:
        return [f"{len(uses)} calls, {len(results)} results: {uses}"]
    said = str(uses[0].get("permission", {}).get("reason"))
    faults = [] if reason in said else [f"said {said!r} and not {reason!r}"]
    if "a hook of the agent" not in str(results[0]["content"]):
        faults.append(f"the model was told {results[0]['content']}")
    return faults


async def _still_heard(client: Client, http: httpx2.AsyncClient) -> list[str]:
    """A hook that says nothing lets the call through: the others were denied for what they did."""
    agent = await client.agent(extra_body={"harness": "native", "permissions": _permissions("cat > /dev/null")})
    session_id = await client.session(agent)
    told = await client.run_turn(session_id, "Go. [[script:native]]", patience=120)
    made = [event["evaluated_permission"] for event in told if event["type"] == events.AGENT_TOOL_USE]
    kept = (await http.get("/v1/audit", params={"session_id": session_id})).json()["data"]
    return [] if made == ["allow"] and len(kept) == 1 else [f"a hook without a word: {made}, {len(kept)} entries"]
