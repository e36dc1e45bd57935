"""Cached conversations: a turn parses only new entries, and the cache never changes what a model sees."""

from pathlib import Path

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from tests.integration.harness.doubles import LocalEnvironment, World, make_model

from footplate.domain.ports.harness import Entry
from footplate.domain.sessions.events import text_block
from footplate.harness.native import conversation_entries
from footplate.harness.native.conversation_entries import Conversation
from footplate.harness.native.harness import NativeHarness
from footplate.harness.native.parsed_conversation_cache import ConversationCache
from footplate.harness.native.web.web_tools import WebTools


def make_turn(number: int) -> list[Entry]:
    response = ModelResponse(parts=[TextPart(f"answer {number}")])
    return [
        conversation_entries.prompt_entry(f"turn_{number}", [text_block("?")]),
        conversation_entries.response_entry(f"turn_{number}", response),
    ]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of entries that each call parsed."""
    counts: list[int] = []
    parse = conversation_entries._parse

    def count(entries: list[Entry]) -> list[conversation_entries.ConversationLine]:
        counts.append(len(entries))
        return parse(entries)

    monkeypatch.setattr(conversation_entries, "_parse", count)
    return counts


def list_texts(conversation: Conversation) -> list[str]:
    return [str(message.text) for message in conversation.messages if isinstance(message, ModelResponse)]


def test_only_new_entries_are_parsed(parsed: list[int]) -> None:
    cache = ConversationCache()
    history = [*make_turn(1), *make_turn(2)]
    cache.store("sesn_1", cache.claim("sesn_1", history))
    again = cache.claim("sesn_1", [*history, *make_turn(3)])
    assert parsed == [4, 2]
    assert list_texts(again) == ["answer 1", "answer 2", "answer 3"]


def test_another_history_is_parsed_anew(parsed: list[int]) -> None:
    cache = ConversationCache()
    cache.store("sesn_1", cache.claim("sesn_1", [*make_turn(1), *make_turn(2)]))
    other = cache.claim("sesn_1", [*make_turn(1), *make_turn(9)])
    assert parsed == [4, 4]
    assert list_texts(other) == ["answer 1", "answer 9"]


def test_a_shorter_history_is_parsed_anew() -> None:
    cache = ConversationCache()
    cache.store("sesn_1", cache.claim("sesn_1", [*make_turn(1), *make_turn(2)]))
    assert list_texts(cache.claim("sesn_1", make_turn(1))) == ["answer 1"]


def test_two_turns_do_not_share_a_conversation(parsed: list[int]) -> None:
    cache = ConversationCache()
    cache.store("sesn_1", cache.claim("sesn_1", make_turn(1)))
    first, second = cache.claim("sesn_1", make_turn(1)), cache.claim("sesn_1", make_turn(1))
    assert first is not second


def test_the_least_recently_used_conversation_is_evicted(parsed: list[int]) -> None:
    cache = ConversationCache(max_entries=4)
    histories = {name: make_turn(number) for number, name in enumerate("abc")}
    for name, history in histories.items():
        cache.store(name, cache.claim(name, history))
    parsed.clear()
    for name, history in histories.items():
        cache.claim(name, history)
    assert parsed == [2, 0, 0]


async def test_a_turn_continues_with_the_entries_of_another_worker(tmp_path: Path, parsed: list[int]) -> None:
    world = World(LocalEnvironment(tmp_path))
    model, seen = make_model(world, lambda number: [f"answer {number}"])
    harness = NativeHarness(lambda *_: model, WebTools())
    await harness.run(world.context())
    world.log.entries.extend(make_turn(7))
    world.next_turn("turn_2", "And now?")
    parsed.clear()
    await harness.run(world.context())
    assert parsed[0] == 2, "only what the other worker added"
    assert [type(message).__name__ for message in seen.requests[-1]] == [
        *("ModelRequest", "ModelResponse"),
        *("ModelRequest", "ModelResponse", "ModelRequest"),
    ]
