"""A workflow's history stays small whatever a turn does, and a message that arrives as a workflow ends is not lost.

Three parts. A session with one turn of 3 tool calls and one with a turn of 300 have histories of the same length. Ten
thousand messages are sent to one session while a turn runs, and all of them are processed. Messages are timed to arrive
when idle workflows complete; the sweep, which would repair a lost wake-up, is off.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from bench.prove.figure import Figure, require
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.completion_race import RaceResult, run_race
from bench.support.minimal_client import MinimalClient, message
from bench.support.response_validation import ValidationLedger
from bench.support.workflow_histories import ORGANISATION, WorkflowHistories, event_type_name
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import WhenBusy
from footplate.testing import replies, reply, text, tool

_ENVIRONMENT: Final = {"FOOTPLATE_LINGER": "0.5", "FOOTPLATE_SWEEP_INTERVAL": "3600"}
_MAX_ADDED: Final = 25
_SENDERS: Final = 16
_QUEUED: Final = 5
_HALF_AN_HOUR_MS: Final = 1_800_000
_WAIT_COMMAND: Final = "until [ -e go ]; do sleep 0.05; done"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    calls, messages, sends = (30, 300, 20) if quick else (300, 10_000, 200)
    ledger = ValidationLedger()
    async with (
        open_cluster(environment=_ENVIRONMENT) as cluster,
        Client(cluster, ledger=ledger) as client,
        MinimalClient(cluster.base_urls[0], cluster.key) as lean,
    ):
        histories = await WorkflowHistories.connect(cluster)
        few, many = await _list_turn_histories(cluster, client, histories, (3, calls))
        added, all_added = await _send_during_turn(cluster, client, lean, histories, messages)
        hits = await run_race(lean, histories, sends=sends, at_once=5)
    processed = len(hits.hits)
    headline = f"{len(few)} history events for a turn with 3 tool calls, {len(many)} with {calls}"
    if added > _MAX_ADDED:
        headline = f"{messages:,} messages during a turn added {added} history events (limit {_MAX_ADDED})"
    elif processed != sends:
        headline = f"{processed} of {sends} messages around a workflow's end were processed"
    elif ledger.mismatches:
        headline = f"{len(ledger.mismatches)} events do not match the SDK's models"
    return Figure(
        headline=headline,
        summary=f"a session with one turn has {len(few)} history events with 3 tool calls, {len(many)} with {calls}; "
        f"{messages:,} messages during a running turn added {added} (limit {_MAX_ADDED}), {all_added} by the time all "
        f"were processed; {processed} of {sends} messages sent around the end of the linger were processed "
        f"({_describe_race(hits)}); no workflow stayed open",
        holds=few == many and added <= _MAX_ADDED and processed == sends and not ledger.mismatches,
        details={
            "history_of_a_turn": [*few],
            "added_while_running": added,
            "added_until_processed": all_added,
            "race": [{"where": hit.where, "ms": round(hit.seconds * 1000, 1)} for hit in hits.hits],
            "events_validated": ledger.validated + hits.validated,
        },
    )


def _describe_race(hits: RaceResult) -> str:
    during, off = hits.count("during"), hits.median * 1000
    return (
        f"{hits.count('before')} arrived before it, {during} while the workflow ended, {hits.count('after')} after; "
        f"Temporal kept {hits.refused} workflows from completing; median distance {off:.0f} ms"
    )


async def _list_turn_histories(
    cluster: Cluster, client: Client, histories: WorkflowHistories, sizes: Sequence[int]
) -> Sequence[Sequence[str]]:
    """Returns, for each number of tool calls, the kinds of all history events of a session with one such turn."""
    agent = await client.agent(extra_body={"limits": {"max_iterations": 1000}})
    found = []
    for calls in sizes:
        call = tool("bash", {"command": "echo {n}"})
        await cluster.model.install(f"calls-{calls}", replies(reply(call, repeat=calls), [text("done")]))
        session_id = await client.session(agent)
        received = await client.run_turn(session_id, f"[[script:calls-{calls}]]", patience=300)
        results = sum(event["type"] == events.AGENT_TOOL_RESULT for event in received)
        require(holds=results == calls, otherwise=f"{results} of {calls} tools ran")
        await histories.wait_until_closed(session_id)
        found.append([event_type_name(event) for event in await histories.fetch_events(session_id)])
    return found


async def _send_during_turn(
    cluster: Cluster, client: Client, lean: MinimalClient, histories: WorkflowHistories, messages: int
) -> tuple[int, int]:
    """Returns the history events added while the turn ran, and until all messages were processed.

    Most messages steer the running turn; the last few start turns of their own. Both kinds wake the workflow alike.
    """
    call = tool("bash", {"command": _WAIT_COMMAND, "timeout_ms": _HALF_AN_HOUR_MS})
    await cluster.model.install("flood", replies([call], reply(text("done"), repeat=True)))
    session_id = await client.session()
    async with client.stream(session_id) as stream:
        await client.send_text(session_id, "[[script:flood]]")
        await stream.until(events.AGENT_TOOL_USE)
    before = len(await histories.fetch_events(session_id))
    await _send_all(lean, client.ledger, session_id, WhenBusy.STEER, messages - _QUEUED)
    await _send_all(lean, client.ledger, session_id, WhenBusy.QUEUE, _QUEUED)
    added = len(await histories.fetch_events(session_id)) - before
    session = await client.sdk.beta.sessions.retrieve(session_id)
    require(holds=session.status == "running", otherwise=f"the turn was {session.status} before all were sent")

    workspace = cluster.directory / "data" / "workspaces" / ORGANISATION / session_id
    await asyncio.to_thread((workspace / "go").touch)
    await _wait_until_processed(client, session_id, messages + 1)
    return added, len(await histories.wait_until_idle(session_id)) - before


async def _send_all(
    lean: MinimalClient, ledger: ValidationLedger, session_id: str, when_busy: WhenBusy, count: int
) -> None:
    """Sends the messages one by one, from several senders at once."""
    numbers = iter(range(count))

    async def sender() -> None:
        for number in numbers:
            body: dict[str, Any] = {"events": [{**message(f"{when_busy} {number}"), "when_busy": when_busy}]}
            ledger.check_body(await lean.post(f"/v1/sessions/{session_id}/events", body))

    await asyncio.gather(*(sender() for _ in range(_SENDERS)))


async def _wait_until_processed(client: Client, session_id: str, expected: int) -> None:
    async with asyncio.timeout(300):
        while True:
            listed = await client.events(session_id, **{"types[]": events.USER_MESSAGE})
            require(holds=len(listed) == expected, otherwise=f"{len(listed)} of {expected} messages are in the log")
            if all(event["processed_at"] for event in listed):
                return
            await asyncio.sleep(1)
