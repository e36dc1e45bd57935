"""How the script for a request, and the index of its reply, are chosen."""

from collections.abc import Mapping

import pytest

from footplate.domain.json import Json, JsonObject
from footplate.testing import text, tool
from footplate.testing.reply_steps import Step
from footplate.testing.server.script_selection import match_tool_names, select_script
from footplate.testing.wire import anthropic_messages, openai_chat, openai_responses
from footplate.testing.wire.wire_format_interface import ConversationMessage


def make_body(*messages: tuple[str, Json], system: Json = None) -> JsonObject:
    return {"system": system, "messages": [{"role": role, "content": content} for role, content in messages]}


def choose(data: JsonObject, headers: Mapping[str, str] | None = None, *installed: str) -> tuple[str, int]:
    chosen = select_script(headers or {}, anthropic_messages.read_conversation(data), installed)
    return chosen.script, chosen.n


RESULT: Json = [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "[[script:x]]"}]}]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (make_body(), ("default", 0)),
        (make_body(("user", "plain")), ("default", 0)),
        (make_body(("user", "[[script:a]]")), ("a", 0)),
        (make_body(("user", "[[script:a]] [[script:b.c-d]]")), ("b.c-d", 0)),
        (make_body(("user", "[[script:a]]"), ("assistant", "1"), ("user", RESULT), ("assistant", "2")), ("a", 2)),
        (make_body(("user", "[[script:a]]"), ("assistant", "1"), ("user", "[[script:a]]")), ("a", 0)),
        (make_body(("user", "[[script:a]]"), ("assistant", "[[script:b]]"), ("user", "more")), ("a", 1)),
        (make_body(("user", "hi"), system="Be kind. [[script:sys]]"), ("sys", 0)),
        (
            make_body(
                ("user", "hi"), ("assistant", "1"), ("user", "x"), system=[{"type": "text", "text": "[[script:sys]]"}]
            ),
            ("sys", 1),
        ),
        (make_body(("system", "[[script:sys]]"), ("user", "hi")), ("sys", 0)),
        (make_body(("user", "[[script:a]]"), ("system", "[[script:sys]]")), ("a", 0)),
        (make_body(("user", [{"type": "text", "text": "[[script:a]]"}, {"type": "image"}])), ("a", 0)),
        ({"messages": ["odd", {"role": "user"}]}, ("default", 0)),
    ],
)
def test_script_and_index_are_chosen_from_the_messages(data: JsonObject, expected: tuple[str, int]) -> None:
    assert choose(data) == expected


CALL: Json = [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]
CHAT_ROUND: list[Json] = [
    {"role": "assistant", "content": None, "tool_calls": CALL},
    {"role": "tool", "tool_call_id": "c", "content": "[[script:x]]"},
]
RESPONSES_ROUND: list[Json] = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "[[script:x]]"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "[[script:x]]"}]},
    {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"},
    {"type": "function_call", "call_id": "d", "name": "bash", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "[[script:x]]"},
    {"type": "function_call_output", "call_id": "d", "output": [{"type": "input_text", "text": "[[script:x]]"}]},
]


@pytest.mark.parametrize("user", ["[[script:a]]", [{"type": "text", "text": "[[script:a]]"}, {"type": "image_url"}]])
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_the_choice_in_a_chat(user: Json, rounds: int) -> None:
    system: Json = {"role": "developer", "content": "[[script:sys]]"}
    messages_of_chat = openai_chat.read_conversation(
        {"messages": [system, {"role": "user", "content": user}, *CHAT_ROUND * rounds]}
    )
    chosen = select_script({}, messages_of_chat, ())
    assert (chosen.script, chosen.n) == ("a", rounds)
    assert chosen.prompt == "[[script:a]]"
    assert choose_plain(openai_chat.read_conversation({"messages": [system, *CHAT_ROUND * rounds]})) == ("sys", rounds)


@pytest.mark.parametrize("user", ["[[script:a]]", [{"type": "input_text", "text": "[[script:a]]"}]])
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_the_choice_in_responses(user: Json, rounds: int) -> None:
    """A reply of several items counts as one."""
    items = openai_responses.read_conversation(
        {"instructions": "[[script:sys]]", "input": [{"role": "user", "content": user}, *RESPONSES_ROUND * rounds]}
    )
    chosen = select_script({}, items, ())
    assert (chosen.script, chosen.n) == ("a", rounds)
    assert chosen.prompt == "[[script:a]]"
    assert choose_plain(openai_responses.read_conversation({"instructions": "[[script:sys]]", "input": "hi"})) == (
        "sys",
        0,
    )
    assert choose_plain(openai_responses.read_conversation({"input": "[[script:b]]"})) == ("b", 0)


def choose_plain(conversation: list[ConversationMessage]) -> tuple[str, int]:
    chosen = select_script({}, conversation, ())
    return chosen.script, chosen.n


def test_a_script_named_like_the_session_wins() -> None:
    data = make_body(("user", "[[script:a]]"), ("assistant", "1"), ("user", "[[script:a]]"))
    headers = {"x-footplate-session": "sesn_1"}
    assert choose(data, headers) == ("a", 0)
    assert choose(data, headers, "sesn_1") == ("sesn_1", 1)
    assert choose(data, {"x-claude-code-session-id": "c1"}, "c1") == ("c1", 1)


def test_conversations_are_distinguished_by_session_or_by_content() -> None:
    one, other = (
        anthropic_messages.read_conversation(make_body(("user", "one"))),
        anthropic_messages.read_conversation(make_body(("user", "other"))),
    )
    session = {"x-footplate-session": "s"}
    assert select_script({}, one, ()).conversation == select_script({}, one, ()).conversation
    assert select_script({}, one, ()).conversation != select_script({}, other, ()).conversation
    assert select_script(session, one, ()).conversation == select_script(session, other, ()).conversation
    assert (
        select_script(session, one, ()).conversation
        != select_script({"x-footplate-session": "t"}, one, ()).conversation
    )


TOOLS: JsonObject = {"tools": [{"name": "Bash"}, {"type": "function", "function": {"name": "grep"}}, {}]}


@pytest.mark.parametrize(
    ("asked", "called"), [("bash", "Bash"), ("Bash", "Bash"), ("GREP", "grep"), ("unknown", "unknown")]
)
def test_a_tool_is_called_by_the_name_that_the_request_has_for_it(asked: str, called: str) -> None:
    steps: list[Step] = [text("Well."), tool(asked, {"a": 1})]
    assert match_tool_names(steps, TOOLS) == [text("Well."), tool(called, {"a": 1})]
    assert match_tool_names(steps, {}) == steps
