"""A process inside the environment that impersonates Claude Code and sends too much output."""

import time
from pathlib import Path
from typing import Any, cast

import claude_agent_sdk as sdk
import pytest
from tests.integration.harness.claude.test_turn_recorder import delta_event, make_recorder, start_event, stream_events
from tests.integration.harness.claude.transcript_lines import FILE, response_line
from tests.integration.harness.doubles import LocalEnvironment, World

from footplate.domain.errors import Temporary
from footplate.domain.ports.harness import Process
from footplate.harness.claude.recording import response_stream, transcript_size_limit
from footplate.harness.claude.session import cli_transport
from footplate.harness.claude.session.cli_transport import EnvironmentTransport, Frame

pytestmark = pytest.mark.timing


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(LocalEnvironment(tmp_path))


class FloodingProcess:
    """Prints lines until all of them are read."""

    stderr_tail = ""
    code = 0

    def __init__(self, *lines: bytes) -> None:
        self._lines = [*lines]

    async def read(self) -> bytes:
        return self._lines.pop(0) if self._lines else b""

    async def wait(self) -> int:
        return self.code

    async def kill(self) -> None:
        self.code = -9

    async def end_input(self) -> None: ...


def make_transport(frames: list[Frame], *lines: bytes) -> EnvironmentTransport:
    transport_to_test = EnvironmentTransport(cast("Any", None), [], {}, frames.append)
    transport_to_test._process = cast("Process", FloodingProcess(*lines))
    return transport_to_test


async def test_endless_lines_do_not_block_the_worker() -> None:
    frames: list[Frame] = []
    begun = time.monotonic()
    async for _ in make_transport(frames, b'{"type": "noise"}\n' * 3001).read_messages():
        pass
    assert len(frames) == 3001
    assert time.monotonic() - begun >= 0.5


async def test_an_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_transport, "MAX_MESSAGE_BYTES", 1000)
    with pytest.raises(sdk.CLIJSONDecodeError):
        await anext(make_transport([], *[b"x" * 100] * 20).read_messages())


async def test_only_a_process_that_died_by_itself_is_an_error() -> None:
    """The SDK logs an exception of the reader as a fatal error."""
    closed = make_transport([], b'{"type": "noise"}\n')
    messages = closed.read_messages()
    await anext(messages)
    await closed.close()
    assert [message async for message in messages] == []
    dead = make_transport([], b'{"type": "noise"}\n')
    await cast("FloodingProcess", dead._process).kill()
    with pytest.raises(sdk.ProcessError):
        _ = [message async for message in dead.read_messages()]


async def test_a_deeply_nested_line_is_refused() -> None:
    with pytest.raises(sdk.CLIJSONDecodeError):
        await anext(make_transport([], b'{"a":' * 200_000 + b"\n").read_messages())


async def test_endless_responses_fail_the_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_stream, "MAX_TURN_CHARACTERS", 1000)
    recorder = make_recorder(world)
    stream_events(recorder, start_event("m"), *[delta_event("x" * 100)] * 10)
    assert not recorder.failed.done()
    stream_events(recorder, *[delta_event("x" * 100)] * 2)
    assert isinstance(recorder.failed.exception(), Temporary)
    monkeypatch.setattr(response_stream, "MAX_RESPONSE_CHARACTERS", 500)
    recorder = make_recorder(world)
    stream_events(recorder, start_event("m"), delta_event("x" * 400), start_event("n"), delta_event("x" * 400))
    assert not recorder.failed.done()
    stream_events(recorder, delta_event("x" * 200))
    assert recorder.failed.done()
    monkeypatch.setattr(response_stream, "MAX_RESPONSES", 10)
    recorder = make_recorder(world)
    stream_events(recorder, *[start_event(f"m{number}") for number in range(20)])
    assert isinstance(recorder.failed.exception(), Temporary)


async def test_an_endless_transcript_fails_the_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_size_limit, "MAX_BYTES", 2000)
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    with pytest.raises(Temporary):
        await recorder.record_lines(
            FILE, [response_line(f"u{number}", f"m{number}", "word " * 20) for number in range(20)]
        )
    assert recorder.failed.done()
