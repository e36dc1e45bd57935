"""Entries become messages: in whatever order results arrived, the model gets a conversation that it accepts."""

import json
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from footplate.domain.ports.harness import Entry
from footplate.domain.sessions.events import text_block
from footplate.harness.native import content_blocks, conversation_entries
from footplate.harness.native.conversation_entries import Conversation

PNG = b"\x89PNG\r\n\x1a\nrest"


@dataclass(frozen=True)
class Round:
    """One prompt, one response with calls, and their results in any order."""

    prompt: str
    calls: tuple[str, ...]
    results: tuple[str, ...]


@st.composite
def rounds(draw: st.DrawFn) -> list[Round]:
    made = []
    for number in range(draw(st.integers(1, 4))):
        calls = tuple(f"r{number}c{index}" for index in range(draw(st.integers(0, 4))))
        made.append(Round(draw(st.text(max_size=5)), calls, tuple(draw(st.permutations(calls)))))
    return made


def make_entries(history: list[Round]) -> list[Entry]:
    entries: list[Entry] = []
    for number, item in enumerate(history):
        turn = f"turn_{number}"
        entries.append(conversation_entries.prompt_entry(turn, [text_block(item.prompt)]))
        parts = [ToolCallPart("bash", "{}", call_id) for call_id in item.calls]
        entries.append(conversation_entries.response_entry(turn, ModelResponse(parts=[TextPart("x"), *parts])))
        entries.extend(
            conversation_entries.tool_return_entry(
                turn, ToolCallPart("bash", "{}", call_id), [text_block(call_id)], is_error=False
            )
            for call_id in item.results
        )
    return entries


@given(rounds())
def test_messages_alternate_and_results_follow_their_calls_in_order(history: list[Round]) -> None:
    messages = Conversation(make_entries(history)).messages
    kinds = [message.kind for message in messages]
    assert all(before != after for before, after in pairwise(kinds))
    for message, following in pairwise(messages):
        if isinstance(message, ModelResponse):
            wanted = [call.tool_call_id for call in message.tool_calls]
            got = following.parts[: len(wanted)]
            assert [part.tool_call_id for part in got if isinstance(part, ToolReturnPart)] == wanted
            assert all(isinstance(part, UserPromptPart) for part in following.parts[len(wanted) :])
    prompts = [
        part.content
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    assert prompts == [item.prompt for item in history]


@given(rounds(), st.integers(0, 30))
def test_a_restart_builds_the_same_messages_as_the_running_turn(history: list[Round], cut: int) -> None:
    entries = make_entries(history)
    running = Conversation(entries[:cut])
    for entry in entries[cut:]:
        running.add_entries([entry])
    stored = [Entry(entry.kind, json.loads(json.dumps(entry.body))) for entry in entries]
    assert _shape(running) == _shape(Conversation(stored))


@given(rounds())
def test_open_calls_are_those_without_a_result(history: list[Round]) -> None:
    entries = make_entries(history)
    missing = len(history[-1].results) // 2
    shortened = entries[: len(entries) - missing] if missing else entries
    lost = history[-1].results[len(history[-1].results) - missing :]
    found = [call.tool_call_id for call in Conversation(shortened).open_calls()]
    assert found == [call_id for call_id in history[-1].calls if call_id in lost]


def _shape(conversation: Conversation) -> list[tuple[str, list[tuple[str, object]]]]:
    return [
        (message.kind, [(part.part_kind, getattr(part, "content", None)) for part in message.parts])
        for message in conversation.messages
    ]


def test_thinking_keeps_its_signature_and_bodies_stay_lean() -> None:
    parts: list[ModelResponsePart] = [ThinkingPart("hm", signature="sig", provider_name="anthropic"), TextPart("Hi")]
    entry = conversation_entries.response_entry(
        "turn_1", ModelResponse(parts=parts, provider_name="anthropic", finish_reason="stop")
    )
    (message,) = Conversation([entry]).messages
    assert isinstance(message, ModelResponse)
    assert message.parts == parts
    assert message.finish_reason == "stop"
    assert not {"timestamp", "usage", "run_id"} & set(json.loads(json.dumps(entry.body))["message"])


def test_attachments_survive_storing() -> None:
    blocks = [text_block("see"), content_blocks.binary_block(PNG, "image/png")]
    call = ToolCallPart("read", "{}", "c1")
    entry = conversation_entries.tool_return_entry("turn_1", call, [*blocks], is_error=False)
    stored = Entry(entry.kind, json.loads(json.dumps(entry.body)))
    (message,) = Conversation([stored]).messages
    (part,) = message.parts
    assert isinstance(part, ToolReturnPart)
    assert isinstance(part.content, list)
    text, image = part.content
    assert text == "see"
    assert isinstance(image, BinaryContent)
    assert (image.data, image.media_type) == (PNG, "image/png")


def test_entries_of_another_harness_are_skipped() -> None:
    assert Conversation([Entry("transcript", {"line": 1})]).messages == []
