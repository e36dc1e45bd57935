"""Agents that start child sessions on a whole deployment, with both harnesses: results, messages, limits and a killed
worker.
"""

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from bench.support.clients import TOOLSET, Client
from bench.support.cluster import Cluster, open_cluster

from footplate.client import AsyncFootplate
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.testing import ScriptedModel, replies, text, tool
from footplate.testing.model_scripts import Request, Script
from footplate.testing.reply_steps import Step

pytestmark = [pytest.mark.timing, pytest.mark.timeout(600)]

FAST = {"FOOTPLATE_LEASE": "8", "FOOTPLATE_HEARTBEAT_TIMEOUT": "12", "FOOTPLATE_SWEEP_INTERVAL": "2"}
PREFIXES = {"native": "", "claude": "mcp__custom__"}
HARNESSES = pytest.mark.parametrize("harness", [*PREFIXES])


def find_id(request: Request, prefix: str) -> str:
    """Returns the last id with this prefix that the model was shown."""
    return str(re.findall(rf"{prefix}_\w+", json.dumps(request.body["messages"]))[-1])


def last_result(request: Request) -> str:
    return json.dumps(request.body["messages"][-1])  # pyrefly: ignore[bad-index, unsupported-operation]


def make_scripts(harness: str) -> dict[str, Script]:
    def call(name: str, **given: Any) -> Sequence[Step]:
        return [tool(PREFIXES[harness] + name, given)]

    def wait(request: Request) -> Sequence[Step]:
        return call("wait_sessions", group_id=find_id(request, "sgrp"))

    def send(request: Request) -> Sequence[Step]:
        return call("message_session", session_id=find_id(request, "sesn"), text="More [[script:more]]")

    def pair(request: Request) -> Sequence[Step]:
        sessions = [{"name": name, "prompt": f"Go [[script:{name}]]"} for name in ("one", "two")]
        if request.n == 1 and "Group ID" in last_result(request):
            return wait(request)
        return [text("All done.")] if request.n else call("spawn_sessions", sessions=sessions)

    def endless(request: Request) -> Sequence[Step]:
        if request.n == 1 and "Group ID" in last_result(request):
            return wait(request)
        child = {"prompt": f"Go [[script:endless-{harness}]]"}
        return [text("Stopped.")] if request.n else call("spawn_sessions", sessions=[child])

    def messages(request: Request) -> Sequence[Step]:
        if request.n == 0:
            return call("spawn_sessions", sessions=[{"prompt": "Go [[script:slow]]"}])
        return {1: send, 2: wait, 3: send}.get(request.n, lambda _: [text("All done.")])(request)

    wrong = replies(
        call("wait_sessions", group_id="sgrp_unknown"),
        call("spawn_sessions", sessions=[]),
        call("message_session", session_id="sesn_unknown", text="Hello"),
        [text("All done.")],
    )
    found: dict[str, Script] = {"pair": pair, "endless": endless, "messages": messages, "mistakes": wrong}
    return {f"{name}-{harness}": script for name, script in found.items()}


@pytest.fixture(scope="module")
async def model() -> AsyncIterator[ScriptedModel]:
    scripts: dict[str, Script] = {
        "one": replies([text("First result.")]),
        "two": replies([text("Second result.")]),
        "slow": replies([text("Slow.", start_delay=4)]),
        "more": replies([text("The message was read.")]),
    }
    async with ScriptedModel({**scripts, **make_scripts("native"), **make_scripts("claude")}) as started:
        yield started


@pytest.fixture(scope="module")
async def cluster(stack: Stack, model: ScriptedModel) -> AsyncIterator[Cluster]:
    environment = {**FAST, "FOOTPLATE_ANTHROPIC_BASE_URL": model.url}
    async with open_cluster(workers=2, stack=stack, environment=environment) as opened:
        yield opened


async def run(cluster: Cluster, harness: str, script: str, **agent: Any) -> tuple[str, list[Any]]:
    """Runs one turn until the session is idle and waits for nothing. Returns the session and its events."""
    async with Client(cluster) as client:
        tools = [{**TOOLSET, "spawn_sessions": True}]
        session_id = await client.session(await client.agent(tools=tools, extra_body={"harness": harness, **agent}))
        await client.send_text(session_id, f"Go [[script:{script}-{harness}]]")

        async def has_ended() -> bool:
            turns = await client.list_turns(session_id)
            return bool(turns) and turns[0]["status"] not in {"running", "pending", "awaiting_tool_results"}

        assert await wait_until(has_ended, 180), await client.events(session_id)
        return session_id, await client.events(session_id)


def texts(events: Sequence[Any], *types: str) -> list[str]:
    return [json.dumps(event["content"]) for event in events if event["type"] in types]


def calls(events: Sequence[Any]) -> list[str]:
    return [event["name"] for event in events if event["type"] in {"agent.tool_use", "agent.custom_tool_use"}]


def find_last_request(model: ScriptedModel, script: str) -> str:
    bodies = [json.dumps(request.body) for request in model.requests()]
    return [body for body in bodies if f"[[script:{script}]]" in body][-1]


async def list_children(cluster: Cluster, session_id: str) -> list[Any]:
    async with AsyncFootplate(cluster.base_urls[0], cluster.key) as client:
        return [one async for one in client.sessions.list(parent_id=session_id)]


@pytest.mark.requirement("O5")
@pytest.mark.parametrize(
    ("harness", "failpoint"),
    [("native", None), ("claude", None), ("native", "before_result_commit"), ("claude", "after_ask")],
)
async def test_the_results_of_child_sessions_reach_the_model_once(
    cluster: Cluster, model: ScriptedModel, harness: str, failpoint: str | None
) -> None:
    if failpoint is not None:
        (cluster.failpoints / failpoint).write_text("kill")
    session_id, events = await run(cluster, harness, "pair")
    if failpoint is not None:
        assert not (cluster.failpoints / failpoint).exists()
        for index in range(2):
            await cluster.restart_worker(index)
    assert "All done." in texts(events, "agent.message")[-1]
    assert calls(events) == ["spawn_sessions", "wait_sessions"]
    children = await list_children(cluster, session_id)
    assert len(children) == 2
    assert {one.status for one in children} == {"terminated"}
    # Sessions that ended while no worker had the turn: their result is there at once, and the turn does not park.
    results = texts(events, "user.custom_tool_result", "agent.tool_result")
    (result,) = [one for one in results if "2 of 2 sessions completed" in one]
    assert "First result." in result
    assert "Second result." in result
    request = find_last_request(model, f"pair-{harness}")
    assert request.count("2 of 2 sessions completed") == 1


@pytest.mark.requirement("O5")
@HARNESSES
async def test_an_agent_that_starts_sessions_without_end_stops_at_the_limit(cluster: Cluster, harness: str) -> None:
    session_id, _ = await run(cluster, harness, "endless")
    for _ in range(3):
        (child,) = await list_children(cluster, session_id)
        assert child.status == "terminated"
        session_id = child.id
    assert await list_children(cluster, session_id) == []
    async with Client(cluster) as client:
        assert "cannot start others" in str(texts(await client.events(session_id), "agent.tool_result"))


@pytest.mark.requirement("O5")
@HARNESSES
async def test_a_message_reaches_a_child_that_has_not_ended(cluster: Cluster, harness: str) -> None:
    session_id, events = await run(cluster, harness, "messages")
    (child,) = await list_children(cluster, session_id)
    async with Client(cluster) as client:
        received = texts(await client.events(child.id), "user.message")
    assert len([one for one in received if "script:more" in one]) == 1
    (result,) = texts(events, "user.custom_tool_result")
    assert "The message was read." in result
    *_, refused = texts(events, "agent.tool_result")
    assert "ended" in refused


@pytest.mark.requirement("O5")
@HARNESSES
async def test_a_refused_call_is_a_result_for_the_model(cluster: Cluster, harness: str) -> None:
    _, events = await run(cluster, harness, "mistakes")
    unknown, invalid, message = texts(events, "agent.tool_result")
    assert "There is no group" in unknown
    assert "sessions" in invalid
    assert "There is no session" in message
    _, events = await run(cluster, harness, "pair", permissions={"deny": ["spawn_sessions"]})
    assert "Denied by the rule spawn_sessions" in texts(events, "agent.tool_result")[0]
