"""A process inside the environment that impersonates Claude Code and sends too much output."""

import time
from pathlib import Path
from typing import cast

import claude_agent_sdk as sdk
import pytest
from tests.integration.harness.claude.lines import PLACE, said
from tests.integration.harness.claude.test_store import begin, delta, recorder_of, stream
from tests.integration.harness.twins import LocalEnvironment, World

from footplate.domain.errors import Temporary
from footplate.domain.ports import Process
from footplate.harness.claude import answer, transport, volume
from footplate.harness.claude.transport import EnvironmentTransport, Frame

pytestmark = pytest.mark.timing


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(LocalEnvironment(tmp_path))


class Chatter:
    """Prints lines until all of them are read."""

    last_words = ""

    def __init__(self, *lines: bytes) -> None:
        self._lines = [*lines]

    async def read(self) -> bytes:
        return self._lines.pop(0) if self._lines else b""

    async def wait(self) -> int:
        return 0


def reading(heard: list[Frame], *lines: bytes) -> EnvironmentTransport:
    made = EnvironmentTransport(cast("LocalEnvironment", None), [], {}, heard.append)
    made._process = cast("Process", Chatter(*lines))
    return made


async def test_lines_without_end_do_not_take_all_of_the_worker() -> None:
    heard: list[Frame] = []
    begun = time.monotonic()
    async for _ in reading(heard, b'{"type": "noise"}\n' * 3001).read_messages():
        pass
    assert len(heard) == 3001
    assert time.monotonic() - begun >= 0.5


async def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LONGEST", 1000)
    with pytest.raises(sdk.CLIJSONDecodeError):
        await anext(reading([], *[b"x" * 100] * 20).read_messages())


async def test_a_line_nested_without_end_is_refused() -> None:
    with pytest.raises(sdk.CLIJSONDecodeError):
        await anext(reading([], b'{"a":' * 200_000 + b"\n").read_messages())


async def test_answers_without_end_fail_the_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "MOST_SAID", 1000)
    recorder = recorder_of(world)
    stream(recorder, begin("m"), *[delta("x" * 100)] * 10)
    assert not recorder.failed.done()
    stream(recorder, *[delta("x" * 100)] * 2)
    assert isinstance(recorder.failed.exception(), Temporary)
    monkeypatch.setattr(answer, "MOST_OF_AN_ANSWER", 500)
    recorder = recorder_of(world)
    stream(recorder, begin("m"), delta("x" * 400), begin("n"), delta("x" * 400))
    assert not recorder.failed.done()
    stream(recorder, delta("x" * 200))
    assert recorder.failed.done()
    monkeypatch.setattr(answer, "MOST_ANSWERS", 10)
    recorder = recorder_of(world)
    stream(recorder, *[begin(f"m{number}") for number in range(20)])
    assert isinstance(recorder.failed.exception(), Temporary)


async def test_a_transcript_without_end_fails_the_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume, "MOST_BYTES", 2000)
    recorder = recorder_of(world)
    await recorder.begin([], [])
    with pytest.raises(Temporary):
        await recorder.mirrored(PLACE, [said(f"u{number}", f"m{number}", "word " * 20) for number in range(20)])
    assert recorder.failed.done()
