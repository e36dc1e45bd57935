"""The whole API works with the unmodified Python SDK, sync and async: every method, every error, every page.

The calls are those of the probes in `tests/compat`, from which docs/compatibility.md is generated. Each probe runs with
both clients. Then both stream sessions with many tool calls, and the streamed events must equal the listed ones.
Everything that the server sends is strictly validated with the SDK's own models; one mismatch fails the claim.
"""

import asyncio
from collections import Counter
from importlib.metadata import version
from typing import Final

import anthropic
from tests.compat import probes, reference

from bench.prove.figure import Figure, require
from bench.support.cluster import Cluster, open_cluster
from bench.support.sdk.sdk_client import SDK_KINDS, CallTally, SdkClient, SdkKind
from footplate.domain.json import JsonObject
from footplate.testing import replies, text, tool

_SDK: Final = "2.8.0"
_MIN_CALLS: Final = 120
_MIN_STREAMED_EVENTS: Final = 2000
_AT_ONCE: Final = 4
_BUSY: Final = "door-busy"
_ROUNDS: Final = 10
_TOOLS: Final = 4
"""Calls in each of a busy turn's rounds: with its request each round makes at least ten events."""
_RESOURCES: Final = ("agents", "agents.versions", "environments", "files", "sessions", "sessions.events")
_REFUSALS: Final = (
    anthropic.BadRequestError,
    anthropic.AuthenticationError,
    anthropic.NotFoundError,
    anthropic.ConflictError,
    anthropic.ContentTooLargeError,
)


_SETTINGS: Final = {
    **dict.fromkeys(("FOOTPLATE_MCP_ALLOW", "FOOTPLATE_WEB_ALLOW", "FOOTPLATE_WEBHOOK_ALLOW"), "127.0.0.1"),
    "FOOTPLATE_WEBHOOK_HTTP": "true",
}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    tally = CallTally()
    async with open_cluster(workers=1 if quick else 2, environment=_SETTINGS) as cluster:
        await probes.install(cluster)
        await cluster.model.install(
            _BUSY,
            replies(*[[tool("glob", {"pattern": f"*.{n}"}) for n in range(_TOOLS)]] * _ROUNDS, [text("Done.")]),
        )
        await _run_probes(cluster, tally, quick=quick)
        before = tally.ledger.frames
        turns = await _stream_turns(
            cluster, tally, wanted=_MIN_STREAMED_EVENTS // 10 if quick else _MIN_STREAMED_EVENTS
        )
        if not quick:
            await _check_database_outage(cluster, tally)
    _check_every_method_was_called(tally)
    for error in _REFUSALS:
        require(holds=tally.refusals[error.__name__] > 0, otherwise=f"nothing raised {error.__name__}")
    return _figure(tally, turns, tally.ledger.frames - before, quick=quick)


async def _run_probes(cluster: Cluster, tally: CallTally, *, quick: bool) -> None:
    """Runs all probes with both clients; in a sample each with one of them, alternating."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def run(name: str, kind: SdkKind) -> None:
        async with limit, SdkClient(cluster, kind, tally=tally) as door:
            try:
                await probes.load()[name](door)
            except Exception as error:
                error.add_note(f"in probe {name}, {kind}")
                raise

    async with asyncio.TaskGroup() as group:
        for number, name in enumerate(sorted(probes.load())):
            for kind in (SDK_KINDS[number % 2],) if quick else SDK_KINDS:
                group.create_task(run(name, kind))


async def _stream_turns(cluster: Cluster, tally: CallTally, *, wanted: int) -> int:
    """Runs turns on streams of both clients until `wanted` events arrived; returns the number of turns."""
    turns, start = 0, tally.ledger.frames
    while tally.ledger.frames - start < wanted:
        await asyncio.gather(*(_run_busy_turn(cluster, tally, kind) for kind in SDK_KINDS))
        turns += len(SDK_KINDS)
    return turns


async def _run_busy_turn(cluster: Cluster, tally: CallTally, kind: SdkKind) -> None:
    async with SdkClient(cluster, kind, tally=tally) as door:
        session = await door.session()
        received = await door.run_turn(session.id, _BUSY, event_deltas=["agent.message"])
        listed = await door.list_all("sessions.events.list", session.id, limit=50)
        streamed = [event.id for event in received if not event.type.startswith("event_")]
        # The message is streamed twice: when it is queued and when it is processed.
        require(
            holds=list(dict.fromkeys(streamed)) == [event.id for event in listed] and len(streamed) == len(listed) + 1,
            otherwise=f"the stream had {len(streamed)} events where the list has {len(listed)}",
        )


async def _check_database_outage(cluster: Cluster, tally: CallTally) -> None:
    """Checks that the SDK gets a typed error while the database is down, and works again afterwards."""
    database = cluster.stack.postgres
    assert database is not None
    for kind in SDK_KINDS:
        async with SdkClient(cluster, kind, tally=tally, max_retries=0) as door:
            await database.stop()
            try:
                refusal = await door.expect_error(anthropic.ServiceUnavailableError, "agents.list")
            finally:
                await database.start()
            require(holds=refusal.type == "api_error", otherwise=f"503 is of type {refusal.type!r}")
            await door.sdk.with_options(max_retries=10).beta.agents.list()


def _check_every_method_was_called(tally: CallTally) -> None:
    names = [m.name for m in reference.methods() if m.name.rsplit(".", 1)[0] in _RESOURCES]
    called = {call.split(" ")[1] for call in tally.calls}
    require(holds=set(names) <= called, otherwise=f"never called: {set(names) - called}")


def _figure(tally: CallTally, turns: int, streamed: int, *, quick: bool) -> Figure:
    calls = tally.calls.total()
    by_kind = {kind: _count_calls(tally, kind) for kind in SDK_KINDS}
    methods = {call.split(" ")[1] for call in tally.calls}
    sdk = version("anthropic")
    mismatches = len(tally.ledger.mismatches)
    return Figure(
        headline=f"{calls} calls over {len(methods)} methods, {tally.ledger.validated:,} events validated, "
        f"{mismatches} mismatches",
        summary=f"anthropic {sdk}: {calls} calls over {len(methods)} methods ({by_kind['sync']} sync, "
        f"{by_kind['async']} async), {tally.refusals.total()} of them refused as "
        f"{len(tally.refusals)} typed exceptions; {tally.ledger.frames} events streamed, "
        f"{streamed} of them in {turns} busy turns, the same as in the lists; "
        f"{tally.ledger.validated} events strictly validated, {mismatches} mismatches",
        holds=sdk == _SDK
        and calls >= _MIN_CALLS
        and (quick or streamed >= _MIN_STREAMED_EVENTS)
        and not tally.ledger.mismatches,
        details={
            "calls": _sort_counts(tally.calls),
            "refusals": _sort_counts(tally.refusals),
            "events": _sort_counts(tally.ledger.events),
            "probes": len(probes.load()),
        },
    )


def _count_calls(tally: CallTally, kind: SdkKind) -> int:
    return sum(number for call, number in tally.calls.items() if call.startswith(f"{kind} "))


def _sort_counts(counted: Counter[str]) -> JsonObject:
    return {name: counted[name] for name in sorted(counted)}
