"""Measures how many deltas per second reach a hundred clients of one session, against a plain Starlette broadcast.

There are two figures, both compared with the same bare one. *One by one*: deltas go through our publisher, Redis and
the API without being joined, so each is a frame, as in the plain broadcast. *Whole*: a model writes as fast as it can
through the engine and the worker, which joins deltas that arrive within 20 ms; here the model's own deltas are counted.
One of the hundred clients stores what it receives, and all of that is validated.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from bench.support.cluster import Cluster
from bench.support.minimal_client import MinimalClient, Received, events_path, validate_frames
from bench.support.speed.fan_out import bare_starlette
from bench.support.speed.fan_out.delta_frames import PIECE
from bench.support.speed.fan_out.stream_clients import FanOutResult, measure_fan_out
from bench.support.speed.measurement import ROOT, Measurement, median
from footplate.stack import PythonService
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.services.python_service import is_http_ok
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.turn_publisher import TurnPublisher
from footplate.testing import replies, reply, text
from footplate.wiring import DEFAULT_ORGANISATION

CLIENTS: Final = 100
_MIN_RATIO: Final = 0.5
_SCRIPT: Final = "pieces"
_BATCH: Final = 50


async def measure(cluster: Cluster, *, clients: int, pieces: int, rounds: int, slack: float = 1.0) -> Measurement:
    await cluster.model.install(_SCRIPT, replies(reply(text(PIECE * pieces, chunks=pieces), repeat=True)))
    found: dict[str, list[FanOutResult]] = {"bare": [], "one by one": [], "whole": []}
    received: list[Received] = []
    async with _start_bare_app(cluster) as bare, MinimalClient(cluster.base_urls[0], cluster.key) as api:
        session_fields = await api.create_session_fields()

        async def measure_ours(go: Callable[[str], Awaitable[object]]) -> FanOutResult:
            session_id = (await api.post("/v1/sessions", session_fields))["id"]
            heard = await measure_fan_out(
                api, events_path(session_id, deltas=True), partial(go, session_id), clients=clients, pieces=pieces
            )
            received.extend(heard.stored_frames)
            return heard

        async def broadcast_plain() -> object:
            return await bare.post("/broadcast", {"frames": pieces})

        for _ in range(rounds):
            found["bare"].append(
                await measure_fan_out(bare, "/stream", broadcast_plain, clients=clients, pieces=pieces)
            )
            found["one by one"].append(await measure_ours(partial(_publish, cluster, pieces)))
            found["whole"].append(
                await measure_ours(lambda session_id: api.send(session_id, f"Go [[script:{_SCRIPT}]]"))
            )
    rates = {name: median([heard.rate for heard in heards]) for name, heards in found.items()}
    single, whole = rates["one by one"] / rates["bare"], rates["whole"] / rates["bare"]
    return Measurement(
        text=f"{rates['one by one']:,.0f} deltas/s to {clients} clients one by one, {rates['whole']:,.0f} from a "
        f"model, {rates['bare']:,.0f} by a bare broadcast: {single:.2f} and {whole:.2f} times (at least {_MIN_RATIO})",
        holds=min(single, whole) * slack >= _MIN_RATIO,
        details={
            "rates": {name: [round(heard.rate) for heard in heards] for name, heards in found.items()},
            "frames_per_client": {name: heards[-1].frames // clients for name, heards in found.items()},
            "pieces_per_client": pieces,
            "events_validated": validate_frames(received),
        },
    )


async def _publish(cluster: Cluster, pieces: int, session_id: str) -> None:
    """Publishes the deltas as a running turn does, but each one separately."""
    async with LivePublisher(cluster.settings.redis_url) as live:
        turn = TurnPublisher(live, DEFAULT_ORGANISATION, session_id)
        preview = turn.preview("agent.message")
        for number in range(pieces):
            preview.write(PIECE)
            turn.flush()
            if number % _BATCH == 0:
                await live.wait_until_sent()


@asynccontextmanager
async def _start_bare_app(cluster: Cluster) -> AsyncIterator[MinimalClient]:
    port = find_free_port()
    program = PythonService(
        cluster.directory / "bare-starlette",
        title="bare broadcast",
        module=bare_starlette.__name__,
        arguments=(str(port),),
        environment={**cluster.environment(), "PYTHONPATH": str(ROOT)},
        log_file=cluster.directory / "logs" / "bare-starlette.log",
        probe=partial(is_http_ok, LOOPBACK, port, "/"),
    )
    await program.start()
    try:
        async with MinimalClient(f"http://{LOOPBACK}:{port}") as client:
            yield client
    finally:
        await program.stop()
