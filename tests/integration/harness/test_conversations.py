"""Cached conversations: a turn parses only new entries, and the cache never changes what a model sees."""

from pathlib import Path

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from tests.integration.harness.twins import LocalEnvironment, World, model_of

from footplate.domain.events import text_block
from footplate.domain.ports import Entry
from footplate.harness.native import mapping
from footplate.harness.native.conversations import Conversations
from footplate.harness.native.harness import NativeHarness
from footplate.harness.native.mapping import Conversation
from footplate.harness.native.web.access import Web


def turn(number: int) -> list[Entry]:
    answer = ModelResponse(parts=[TextPart(f"answer {number}")])
    return [mapping.prompt(f"turn_{number}", [text_block("?")]), mapping.response(f"turn_{number}", answer)]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of entries that each call parsed."""
    counts: list[int] = []
    parse = mapping._parse

    def count(entries: list[Entry]) -> list[mapping.Line]:
        counts.append(len(entries))
        return parse(entries)

    monkeypatch.setattr(mapping, "_parse", count)
    return counts


def texts(conversation: Conversation) -> list[str]:
    return [str(message.text) for message in conversation.messages if isinstance(message, ModelResponse)]


def test_only_what_is_new_is_parsed(parsed: list[int]) -> None:
    kept = Conversations()
    history = [*turn(1), *turn(2)]
    kept.keep("sesn_1", kept.take("sesn_1", history))
    again = kept.take("sesn_1", [*history, *turn(3)])
    assert parsed == [4, 2]
    assert texts(again) == ["answer 1", "answer 2", "answer 3"]


def test_another_history_is_parsed_anew(parsed: list[int]) -> None:
    kept = Conversations()
    kept.keep("sesn_1", kept.take("sesn_1", [*turn(1), *turn(2)]))
    other = kept.take("sesn_1", [*turn(1), *turn(9)])
    assert parsed == [4, 4]
    assert texts(other) == ["answer 1", "answer 9"]


def test_a_shorter_history_is_parsed_anew() -> None:
    kept = Conversations()
    kept.keep("sesn_1", kept.take("sesn_1", [*turn(1), *turn(2)]))
    assert texts(kept.take("sesn_1", turn(1))) == ["answer 1"]


def test_one_turn_at_a_time_has_it(parsed: list[int]) -> None:
    kept = Conversations()
    kept.keep("sesn_1", kept.take("sesn_1", turn(1)))
    first, second = kept.take("sesn_1", turn(1)), kept.take("sesn_1", turn(1))
    assert first is not second


def test_the_longest_unused_make_room(parsed: list[int]) -> None:
    kept = Conversations(max_entries=4)
    histories = {name: turn(number) for number, name in enumerate("abc")}
    for name, history in histories.items():
        kept.keep(name, kept.take(name, history))
    parsed.clear()
    for name, history in histories.items():
        kept.take(name, history)
    assert parsed == [2, 0, 0]


async def test_a_turn_goes_on_from_what_another_worker_added(tmp_path: Path, parsed: list[int]) -> None:
    world = World(LocalEnvironment(tmp_path))
    model, seen = model_of(world, lambda number: [f"answer {number}"])
    harness = NativeHarness(lambda _: model, Web())
    await harness.run(world.context())
    world.log.entries.extend(turn(7))
    world.next_turn("turn_2", "And now?")
    parsed.clear()
    await harness.run(world.context())
    assert parsed[0] == 2, "only what the other worker added"
    assert [type(message).__name__ for message in seen.requests[-1]] == [
        *("ModelRequest", "ModelResponse"),
        *("ModelRequest", "ModelResponse", "ModelRequest"),
    ]
