"""Every message class of the SDK has a reader, and each reader returns the right facts."""

import inspect
import typing

import claude_agent_sdk as sdk
import pytest

from footplate.domain.agents.mcp_servers import McpServer, ToolNames
from footplate.domain.json import JsonObject
from footplate.domain.sessions import events as ev
from footplate.harness.claude.transcripts import sdk_message_parser, tool_names
from footplate.harness.claude.transcripts.sdk_message_parser import (
    Call,
    Ignored,
    ResponseLine,
    RunEnded,
    TextDelta,
    ToolResult,
    ToolResults,
    UnknownMessage,
)
from footplate.testing.sdk_validation import assert_valid_event


def exported_messages() -> set[type]:
    kinds = typing.get_args(sdk.Message)
    found = (getattr(sdk, name) for name in sdk.__all__)
    return {item for item in found if inspect.isclass(item) and issubclass(item, kinds)}


def test_every_message_class_that_the_sdk_exports_has_a_reader() -> None:
    assert exported_messages() == set(sdk_message_parser.READERS)


def test_an_unknown_class_becomes_an_unknown_fact() -> None:
    class NewMessage(sdk.SystemMessage):
        pass

    assert sdk_message_parser.read_message(NewMessage("new", {})) == UnknownMessage("NewMessage")
    assert sdk_message_parser.read_message(sdk.SystemMessage("something_new", {})) == UnknownMessage(
        "system something_new"
    )
    assert sdk_message_parser.read_message(sdk.SystemMessage("status", {})) == Ignored("status")


def test_a_response_is_text_thinking_and_calls() -> None:
    message = sdk.AssistantMessage(
        content=[sdk.ThinkingBlock("hm", "s"), sdk.TextBlock("Hi"), sdk.ToolUseBlock("t1", "Bash", {"command": "ls"})],
        model="claude-sonnet-5",
        message_id="m1",
    )
    call = Call("t1", "Bash", {"command": "ls"})
    assert sdk_message_parser.read_message(message) == ResponseLine(
        "m1", (("agent.thinking", "hm"), ("agent.message", "Hi"), call), False
    )


def test_a_subagents_message_is_not_the_sessions() -> None:
    message = sdk.AssistantMessage(content=[sdk.TextBlock("Hi")], model="m", parent_tool_use_id="t1")
    assert sdk_message_parser.read_message(message) == Ignored("subagent")


def test_results_of_calls_keep_their_blocks() -> None:
    picture: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    message = sdk.UserMessage(
        content=[
            sdk.ToolResultBlock("t1", "out", None),
            sdk.ToolResultBlock("t2", [picture, {"type": "tool_reference"}], True),
        ]
    )
    assert sdk_message_parser.read_message(message) == ToolResults(
        (ToolResult("t1", (ev.text_block("out"),), False), ToolResult("t2", (picture,), True))
    )


@pytest.mark.parametrize(
    ("event", "fact"),
    [
        ({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "a"}},
         TextDelta(1, "agent.message", "a")),
        ({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "b"}},
         TextDelta(0, "agent.thinking", "b")),
        ({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}},
         Ignored("delta input_json_delta")),
        ({"type": "message_stop"}, sdk_message_parser.ResponseCompleted()),
        ({"type": "brand_new"}, UnknownMessage("stream_event brand_new")),
    ],
)  # fmt: skip
def test_stream_events_become_facts(event: dict[str, object], fact: sdk_message_parser.Fact) -> None:
    assert sdk_message_parser.read_message(sdk.StreamEvent("u", "s", event)) == fact


def test_an_error_of_the_provider_keeps_its_status() -> None:
    message = sdk.ResultMessage(
        subtype="success", duration_ms=1, duration_api_ms=1, is_error=True, num_turns=1, session_id="s",
        result="API Error: 529", api_error_status=529,
    )  # fmt: skip
    assert sdk_message_parser.read_message(message) == RunEnded("success", True, "API Error: 529", None, 529)


def test_events_are_valid_for_the_official_sdk() -> None:
    names = ToolNames([McpServer(name="notes", url="https://mcp.example.com")])
    use = sdk_message_parser.tool_use_event(Call("t1", "Read", {"file_path": "a", "offset": 3, "limit": 2}), names)
    noted = sdk_message_parser.tool_use_event(Call("t2", "mcp__notes__note", {"line": "a"}), names)
    events = [
        *sdk_message_parser.text_events(
            [("agent.thinking", "hm"), ("agent.message", "Hi"), ("agent.message", "")], {1: "sevt_1"}
        ),
        use,
        sdk_message_parser.tool_result_event(use, ToolResult("t1", (ev.text_block("out"),), False)),
        noted,
        sdk_message_parser.tool_result_event(noted, ToolResult("t2", (ev.text_block("out"),), False)),
        ev.context_compacted(),
        ev.mcp_error("notes", "It is not there.", is_authentication=True),
    ]
    assert [event.type for event in events] == [
        ev.AGENT_THINKING,
        ev.AGENT_MESSAGE,
        ev.AGENT_TOOL_USE,
        ev.AGENT_TOOL_RESULT,
        ev.AGENT_MCP_TOOL_USE,
        ev.AGENT_MCP_TOOL_RESULT,
        ev.CONTEXT_COMPACTED,
        ev.SESSION_ERROR,
    ]
    assert events[1].id == "sevt_1"
    for event in events:
        assert_valid_event({"id": event.id, "type": event.type, "processed_at": "2026-01-01T00:00:00Z", **event.body})


def test_tools_have_the_names_and_inputs_of_the_reference() -> None:
    assert tool_names.cli_tool_names(("bash", "read", "web_search")) == ["Bash", "Read", "WebSearch"]
    assert [tool_names.footplate_name(name) for name in ("Bash", "WebFetch", "mcp__x__y")] == [
        "bash",
        "web_fetch",
        "mcp__x__y",
    ]
    edit: JsonObject = {"file_path": "a", "old_string": "b", "new_string": "c"}
    assert tool_names.footplate_input("Edit", {**edit, "replace_all": False}) == edit
    assert tool_names.footplate_input("Edit", {**edit, "replace_all": True}) == {**edit, "replace_all": True}
    assert tool_names.footplate_input("Bash", {"command": "ls", "timeout": 5}) == {"command": "ls", "timeout_ms": 5}
    assert tool_names.footplate_input("Read", {"file_path": "a", "offset": 3, "limit": 2}) == {
        "file_path": "a",
        "view_range": [3, 4],
    }
    assert tool_names.footplate_input("Read", {"file_path": "a", "offset": 3})["view_range"] == [3, 0]


def test_usage_is_priced() -> None:
    used = sdk_message_parser.to_usage(
        "claude-sonnet-4-5", {"input_tokens": 1000, "output_tokens": 100, "cache_read_input_tokens": None}
    )
    assert (used.input_tokens, used.output_tokens, used.requests, used.cost_microusd) == (1000, 100, 1, 4500)
    assert sdk_message_parser.to_usage("nobody-knows", {}).cost_microusd is None
