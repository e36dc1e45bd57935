"""Measures how much later the first token arrives than with pydantic-ai alone, on the same script.

Both sides run alternately, so that other load on the machine affects both. The time is from the request's first byte to
the first text at the client: for a session, through HTTP, log, engine, worker, model, Redis and the event stream; for
pydantic-ai, within one process.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from anthropic import AsyncAnthropic
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from bench.support.cluster import Cluster
from bench.support.minimal_client import MODEL, Frames, MinimalClient, Received, events_path, validate_frames
from bench.support.speed.measurement import Measurement, median, milliseconds
from bench.support.speed.timed_conversation import processed_at, request_times
from footplate.domain.json import JsonObject
from footplate.testing import replies, reply, text

_SCRIPT: Final = "first-token"
_PROMPT: Final = f"Hello [[script:{_SCRIPT}]]"
_TURNS_PER_SESSION: Final = 10
"""Turns per session. A longer conversation would make the model request slower on one side only."""
_STEP_NAMES: Final = {"session.status_running": "claimed", "span.model_request_start": "request begun"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much later the first token may arrive than with pydantic-ai alone."""

    open_ms: float
    """Limit for an open session; `new_ms` is the limit for a new one."""
    new_ms: float


@dataclass(slots=True)
class _Turn:
    side: str
    """`bare`, `open` or `new`; empty for a warm-up turn."""
    sent: float
    first_token: float
    events: Mapping[str, float] = field(default_factory=dict)
    request_arrived: float = 0.0

    @property
    def seconds(self) -> float:
        return self.first_token - self.sent

    @property
    def segments(self) -> dict[str, float]:
        """Seconds between consecutive steps, by the name of the later step."""
        model = {"request at the model": self.request_arrived, "first token": self.first_token}
        times = {"sent": self.sent, **self.events, **model}
        return {name: after - before for (_, before), (name, after) in pairwise(times.items())}


async def measure(cluster: Cluster, limits: Limits, *, samples: int, slack: float = 1.0) -> Measurement:
    await cluster.model.install(_SCRIPT, replies(reply(text("One two three four.", chunks=4, delay=0.02), repeat=True)))
    await cluster.model.clear()
    bare = _model(cluster)
    received: list[Received] = []
    turns: list[_Turn] = []
    async with MinimalClient(cluster.base_urls[0], cluster.key) as client:
        session_fields = await client.create_session_fields()
        turns += [await _run_bare(bare, "") for _ in range(3)]
        in_a_session = min(samples, _TURNS_PER_SESSION)
        sessions = -(-samples // in_a_session)
        for number in range(sessions + 1):
            session_id = (await client.post("/v1/sessions", session_fields))["id"]
            async with client.stream(events_path(session_id, deltas=True)) as frames:
                for turn in range(in_a_session + 1):
                    turns.append(await _run_bare(bare, "bare" if number else ""))
                    side = ("open" if turn else "new") if number else ""
                    turns.append(await _run_here(client, session_id, frames, received, side))
        for _ in range(samples - sessions):
            turns.append(await _run_bare(bare, "bare"))
            session_id = (await client.post("/v1/sessions", session_fields))["id"]
            async with client.stream(events_path(session_id, deltas=True)) as frames:
                turns.append(await _run_here(client, session_id, frames, received, "new"))
    await _add_request_times(cluster, turns)
    return _judge(turns, limits, slack, {"samples": samples, "events_validated": validate_frames(received)})


async def _add_request_times(cluster: Cluster, turns: Sequence[_Turn]) -> None:
    """Adds the model's times to the turns. Turns ran one at a time, so the order of requests is the order of turns."""
    for turn, (arrived, _) in zip(turns, await request_times(cluster, len(turns)), strict=True):
        turn.request_arrived = arrived


def _judge(turns: Sequence[_Turn], limits: Limits, slack: float, details: JsonObject) -> Measurement:
    sides = {side: [turn for turn in turns if turn.side == side] for side in ("bare", "open", "new")}
    medians = {side: milliseconds(median([turn.seconds for turn in own])) for side, own in sides.items()}
    segments = {side: _segments(own) for side, own in sides.items()}
    added_open, added_new = medians["open"] - medians["bare"], medians["new"] - medians["bare"]
    return Measurement(
        text=f"first token {added_open:.0f} ms later than bare pydantic-ai in an open session (limit "
        f"{limits.open_ms:g}), {added_new:.0f} ms in a new one (limit {limits.new_ms:g})",
        holds=added_open <= limits.open_ms * slack and added_new <= limits.new_ms * slack,
        details={**details, "p50_ms": {**medians}, "segments_p50_ms": {**segments}},
        figures={"added_open_ms": added_open, "added_new_ms": added_new},
    )


def _segments(turns: Sequence[_Turn]) -> JsonObject:
    found = [turn.segments for turn in turns]
    return {name: milliseconds(median([segments[name] for segments in found])) for name in found[0]}


async def _run_here(
    client: MinimalClient, session_id: str, frames: Frames, received: list[Received], side: str
) -> _Turn:
    """Sends one message and reads the turn to its end."""
    sent = time.time()
    await client.send(session_id, _PROMPT)
    accepted = time.time()
    turn = await frames.until_idle()
    received.extend(turn)
    first = next(frame.at for frame in turn if frame.event in {"event_delta", "agent.message"})
    noted = {_STEP_NAMES[frame.event]: processed_at(frame) for frame in turn if frame.event in _STEP_NAMES}
    return _Turn(side, sent, first, {"accepted": accepted, **noted})


async def _run_bare(model: AnthropicModel, side: str) -> _Turn:
    sent = time.time()
    first: float | None = None
    async with model_request_stream(
        model,
        [ModelRequest.user_text_prompt(_PROMPT)],
        model_request_parameters=ModelRequestParameters(),
        instrument=False,
    ) as stream:
        async for event in stream:
            match event:
                case (
                    PartStartEvent(part=TextPart(content=piece))
                    | PartDeltaEvent(delta=TextPartDelta(content_delta=piece))
                ) if piece and first is None:
                    first = time.time()
    assert first is not None
    return _Turn(side, sent, first)


def _model(cluster: Cluster) -> AnthropicModel:
    client = AsyncAnthropic(api_key="scripted", base_url=cluster.model.url, max_retries=0)
    return AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
