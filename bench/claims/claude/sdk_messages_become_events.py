"""Claude Code produces the same events as the native harness: every SDK message type is converted to events."""

import inspect
import typing
from typing import Final

import claude_agent_sdk as sdk

from bench.prove.figure import Figure
from bench.support.claude.scenarios import ASK, HARNESSES, build_scenarios, describe_comparable
from bench.support.clients import Client, Event
from bench.support.cluster import open_cluster
from bench.support.mcp_server.server_process import McpProcess
from footplate.harness.claude.transcripts import sdk_message_parser

_SETTINGS: Final = {"FOOTPLATE_RETRY_WAIT": "0.2", "FOOTPLATE_MCP_ALLOW": "127.0.0.1"}
_QUICK: Final = ("thoughts", "calls-at-once", "files", "mcp-server", "asking")
_NOTES_PER_RUN: Final = 1
"""The notes that the scenario of the MCP server writes in each run."""
_ROUNDS: Final = 5


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    missing = _exported_message_types() ^ set(sdk_message_parser.READERS)
    compared, events, faults = 0, 0, [f"no reader, or one too many: {kind.__name__}" for kind in missing]
    async with (
        open_cluster(environment=_SETTINGS) as cluster,
        Client(cluster) as client,
        McpProcess(cluster.directory / "notes") as notes,
    ):
        agent_fields = {**notes.agent_fields, "tools": [*notes.agent_fields["tools"], ASK]}
        agents = {name: await client.agent(**agent_fields, extra_body={"harness": name}) for name in HARNESSES}
        for harness in HARNESSES:
            for name, script in build_scenarios(harness).items():
                await cluster.model.install(f"{harness}-{name}", script)
        for _ in range(1 if quick else _ROUNDS):
            for name in _QUICK if quick else build_scenarios("native"):
                both = {
                    harness: await _run_scenario(client, agents[harness], f"{harness}-{name}") for harness in HARNESSES
                }
                compared += 1
                events += sum(map(len, both.values()))
                faults += _find_differences(name, both["native"], both["claude"])
        checked = client.ledger.validated
        rounds = 1 if quick else _ROUNDS
        if len(notes.read_notes()) != rounds * _NOTES_PER_RUN * len(HARNESSES):
            faults.append(f"the MCP server's tool ran {len(notes.read_notes())} times")
    mismatches = len(client.ledger.mismatches)
    headline = f"{compared} scenarios on both harnesses: {events:,} events the same, {mismatches} mismatches"
    summary = (
        f"claude-agent-sdk {sdk.__version__}: {len(sdk_message_parser.READERS)} of "
        f"{len(_exported_message_types())} message classes have a "
        f"reader; {compared} scenarios run by both harnesses, one with an MCP server's tools, one with a custom tool: "
        f"{events} events with the same order, names, inputs and usage; {checked} strictly validated, "
        f"{mismatches} mismatches"
    )
    faults += [str(item) for item in client.ledger.mismatches]
    if faults:
        headline, summary = f"{compared} scenarios on both harnesses: {len(faults)} differences", faults[0]
    for fault in faults:
        print(f"  FAULT {fault}", flush=True)
    return Figure(headline=headline, summary=summary, holds=not faults, details={"faults": [*faults]})


def _exported_message_types() -> set[type]:
    found = (getattr(sdk, name) for name in sdk.__all__)
    return {item for item in found if inspect.isclass(item) and issubclass(item, typing.get_args(sdk.Message))}


async def _run_scenario(client: Client, agent: str, script: str) -> list[Event]:
    """Runs the scenario and responds to the agent's custom tool calls, one at a time."""
    session_id = await client.session(agent)
    async with client.stream(session_id) as stream:
        await client.send_text(session_id, f"Go on. [[script:{script}]]")
        seen = await stream.until_idle()
        while pending_calls := seen[-1]["stop_reason"].get("event_ids"):
            await client.send_tool_result(session_id, pending_calls[-1], f"answer with {len(pending_calls)} open")
            seen += await stream.until_idle()
        return seen


def _find_differences(name: str, native: list[Event], claude: list[Event]) -> list[str]:
    one, other = [describe_comparable(event) for event in native], [describe_comparable(event) for event in claude]
    if one == other:
        return []
    longest = max(len(one), len(other))
    pairs = zip(one + ["nothing"] * (longest - len(one)), other + ["nothing"] * (longest - len(other)), strict=True)
    at, (ours, theirs) = next((number, pair) for number, pair in enumerate(pairs) if pair[0] != pair[1])
    return [f"{name}: event {at} of native is {ours}, of claude {theirs}"]
