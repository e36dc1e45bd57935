"""How much later the first token comes than with pydantic-ai alone, on the same script.

Both sides are asked in turns, so that whatever else the machine does hits both. The time is from the request's first
byte to the first piece of text in the client's hands: for a session, over HTTP, log, engine, worker, model, Redis and
the event stream; for pydantic-ai, in the process that asks.
"""

import time
from typing import Final

from anthropic import AsyncAnthropic
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from bench.prove.cluster import Cluster
from bench.prove.lean import MODEL, Frames, Lean, Received, check, events_path
from bench.prove.speed.measured import Measured, median, milliseconds
from footplate.testing import replies, reply, text

_OPEN_MS: Final = 40
_NEW_MS: Final = 110
_SCRIPT: Final = "first-token"
_PROMPT: Final = f"Hello [[script:{_SCRIPT}]]"
_TURNS: Final = 10
"""Of one session, before the next: a longer conversation would be a slower request on one side alone."""


async def measure(cluster: Cluster, *, samples: int, slack: float = 1.0) -> Measured:
    await cluster.model.install(_SCRIPT, replies(reply(text("One two three four.", chunks=4, delay=0.02), repeat=True)))
    bare = _model(cluster)
    received: list[Received] = []
    times: dict[str, list[float]] = {"bare": [], "open": [], "new": []}
    async with Lean(cluster.base_urls[0], cluster.key) as client:
        seat = await client.seat()
        for _ in range(3):
            await _bare(bare)
        turns = min(samples, _TURNS)
        for number in range(-(-samples // turns) + 1):
            session_id = (await client.post("/v1/sessions", seat))["id"]
            async with client.stream(events_path(session_id, deltas=True)) as frames:
                for turn in range(turns + 1):
                    alone = await _bare(bare)
                    ours = await _ours(client, session_id, frames, received)
                    if number > 0:  # the first round warms everything up
                        times["bare"].append(alone)
                        times["open" if turn else "new"].append(ours)
        for _ in range(samples - len(times["new"])):
            times["bare"].append(await _bare(bare))
            session_id = (await client.post("/v1/sessions", seat))["id"]
            async with client.stream(events_path(session_id, deltas=True)) as frames:
                times["new"].append(await _ours(client, session_id, frames, received))
    medians = {name: milliseconds(median(values)) for name, values in times.items()}
    added_open, added_new = medians["open"] - medians["bare"], medians["new"] - medians["bare"]
    return Measured(
        text=f"first token {added_open:.0f} ms later than bare pydantic-ai in an open session (at most {_OPEN_MS}), "
        f"{added_new:.0f} ms in a new one (at most {_NEW_MS})",
        holds=added_open <= _OPEN_MS * slack and added_new <= _NEW_MS * slack,
        details={"p50_ms": {**medians}, "samples": samples, "events_validated": check(received)},
    )


async def _ours(client: Lean, session_id: str, frames: Frames, received: list[Received]) -> float:
    """Sends one message and reads the turn to its end."""
    begun = time.time()
    await client.send(session_id, _PROMPT)
    turn = await frames.until_idle()
    received.extend(turn)
    return next(frame.at for frame in turn if frame.event in {"event_delta", "agent.message"}) - begun


async def _bare(model: AnthropicModel) -> float:
    begun = time.time()
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
    return first - begun


def _model(cluster: Cluster) -> AnthropicModel:
    client = AsyncAnthropic(api_key="scripted", base_url=cluster.model.url, max_retries=0)
    return AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
