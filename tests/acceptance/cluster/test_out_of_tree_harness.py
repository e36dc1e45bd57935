"""A separate package adds a harness and a toolset to Footplate."""

import json
from collections.abc import AsyncIterator

import pytest
from anthropic import BadRequestError
from bench.support import external_harness, external_toolset
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from bench.support.response_validation import ValidationLedger

from footplate.harness import registry
from footplate.harness.tool_calls import server_toolsets
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

FAST = {"FOOTPLATE_LEASE": "4", "FOOTPLATE_HEARTBEAT_TIMEOUT": "6"}


@pytest.fixture(scope="module")
async def cluster(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    target = tmp_path_factory.mktemp("package") / "installed"
    await external_harness.install_package(target)
    environment = {**FAST, **external_harness.path_variables(target)}
    async with open_cluster(stack=stack, environment=environment) as opened:
        yield opened


@pytest.mark.requirement("S1")
async def test_a_harness_of_another_package_runs_turns(cluster: Cluster) -> None:
    assert external_harness.HARNESS not in registry.installed_harnesses()
    ledger = ValidationLedger()
    await external_harness.run_turns(cluster, ledger)
    assert ledger.events["agent.message"] == 3


def results(events: list[Event]) -> list[str]:
    return [event["content"][0]["text"] for event in events if event["type"] == "agent.mcp_tool_result"]


@pytest.mark.timing
@pytest.mark.requirement("R1")
@pytest.mark.requirement("F6")
async def test_a_toolset_of_another_package_is_called_at_most_once(cluster: Cluster) -> None:
    assert external_toolset.TOOLSET not in server_toolsets.installed_toolsets()
    ledger = external_toolset.ledger_path(cluster)
    calls = [("describe_call", {}), ("refuse", {}), ("note", {"line": "one"})]
    steps = [[tool(f"mcp__ledger__{name}", given)] for name, given in calls]
    await cluster.model.install("ledger", replies(*steps, [text("Done.")]))
    await cluster.model.install("one-note", replies([tool("mcp__ledger__note", {"line": "two"})], [text("Done.")]))
    async with Client(cluster) as client:
        agent = await external_toolset.create_agent(client, cluster, "native")
        session_id = await client.session(agent, extra_body={"context": {"ticket": "R-1"}})
        await client.send_text(session_id, "Note. [[script:ledger]]", context={"row": 7})
        described, refused, noted = results(await external_toolset.wait_for_turn(client, session_id))
        call = json.loads(described)
        assert call["context"] == {"ticket": "R-1", "row": 7}
        assert (call["session_id"], call["settings"]) == (session_id, {"ledger": str(ledger)})
        assert call["principal"]
        assert (refused, noted) == ("The ledger is closed.", "Noted: one")

        (cluster.failpoints / "before_result_commit").write_text("kill")
        session_id = await client.session(agent)
        await client.send_text(session_id, "Note. [[script:one-note]]")
        await cluster.workers[0].wait()
        await cluster.restart_worker(0)
        (unknown,) = results(await external_toolset.wait_for_turn(client, session_id))
        assert "outcome of this call is unknown" in unknown
        assert len({*ledger.read_text().split()}) == len(ledger.read_text().split()) == 2

        with pytest.raises(BadRequestError, match="this server has no toolset 'absent'"):
            await client.agent(extra_body={"server_toolsets": [{"name": "absent"}]})

        session_id = await client.session(await external_toolset.create_agent(client, cluster, "native", "always_ask"))
        await client.send_text(session_id, "Note. [[script:one-note]]")
        *_, use, _idle = await external_toolset.wait_for_turn(client, session_id)
        assert (use["type"], use["evaluated_permission"]) == ("agent.mcp_tool_use", "ask")
        await client.send(session_id, {"type": "user.tool_confirmation", "tool_use_id": use["id"], "result": "allow"})

        async def has_result() -> bool:
            return bool(results(await client.events(session_id)))

        assert await wait_until(has_result, 60)
        assert ledger.read_text().split()[-1] == use["id"]
