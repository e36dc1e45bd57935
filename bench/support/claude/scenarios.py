"""Scripted scenarios for both harnesses, with the tool names that each model knows, and the fields to compare."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from bench.support.clients import Event
from footplate.domain.policy.permissions import TOOL_NAMES
from footplate.domain.sessions import events
from footplate.testing import Replies, Step, cut, overloaded, replies, reply, text, thinking, tool

HARNESSES: Final = ("native", "claude")
Name = Callable[[str], str]

ASK: Final = {
    "type": "custom",
    "name": "ask",
    "description": "Ask the person.",
    "input_schema": {"type": "object", "properties": {"question": {"type": "string"}}},
}
"""A custom tool that every session of these scenarios has."""

_FILE: Final = "/workspace/notes.txt"
_CLI_NAMES: Final = {**TOOL_NAMES, "ask": "mcp__custom__ask"}


def tool_namer(harness: str) -> Name:
    return (lambda name: _CLI_NAMES.get(name, name)) if harness == "claude" else (lambda name: name)


def build_scenarios(harness: str) -> Mapping[str, Replies]:
    call = _Calls(tool_namer(harness))
    return {
        "words": replies([text("Hello there.")]),
        "thoughts": replies([thinking("Let me see."), text("I see.")]),
        "one-call": replies([text("Looking."), call("bash", command="echo one")], [text("Done.")]),
        "calls-at-once": replies(
            [call("bash", command="echo a > a"), call("bash", command="cat a"), call("bash", command="echo c")],
            [text("All three.")],
        ),
        "files": replies(
            [call("write", file_path=_FILE, content="alpha\nbeta\n")],
            [call("read", file_path=_FILE)],
            [call("edit", file_path=_FILE, old_string="beta", new_string="gamma")],
            [call("grep", pattern="gamma", path="/workspace"), call("glob", pattern="*.txt")],
            [text("The file says gamma.")],
        ),
        "failing": replies([call("bash", command="echo oops; exit 3")], [text("It failed.")]),
        "many": replies(
            reply(thinking("Again."), text("Number {n}."), call("bash", command="echo {n}"), repeat=6), [text("Six.")]
        ),
        "mcp-server": replies(
            [text("Noting."), tool("mcp__notes__note", {"line": "one"}), tool("mcp__notes__fail", {})],
            [tool("mcp__notes__odd_name", {}), call("bash", command="echo between"), tool("mcp__notes__picture", {})],
            [text("All noted.")],
        ),
        "asking": replies(
            [text("Let me ask."), call("ask", question="Which?")],
            [call("ask", question="Why?"), call("bash", command="echo meanwhile"), call("ask", question="When?")],
            [text("I know now.")],
        ),
        "tried-again": replies(reply(text("At last."), first_attempts=[[overloaded()]])),
        "cut-short": replies(reply(text("Whole."), first_attempts=[[text("Half of it", delay=0.05), cut()]])),
    }


class _Calls:
    def __init__(self, name: Name) -> None:
        self._name = name

    def __call__(self, tool_name: str, **given: Any) -> Step:
        return tool(self._name(tool_name), given)


_AGREED: Final[Mapping[str, Callable[[Event], object]]] = {
    events.AGENT_TOOL_USE: lambda event: (event["name"], sorted(event["input"].items())),
    events.AGENT_TOOL_RESULT: lambda event: event["is_error"],
    events.AGENT_MCP_TOOL_USE: lambda event: (event["mcp_server_name"], event["name"], sorted(event["input"].items())),
    events.AGENT_MCP_TOOL_RESULT: lambda event: (event["is_error"], event["content"][0]["type"]),
    events.AGENT_CUSTOM_TOOL_USE: lambda event: (event["name"], sorted(event["input"].items())),
    events.USER_CUSTOM_TOOL_RESULT: lambda event: event["content"],
    events.AGENT_MESSAGE: lambda event: event["content"],
    events.AGENT_THINKING: lambda event: event["thinking"],
    events.MODEL_REQUEST_END: lambda event: (event["is_error"], event["model_usage"]),
    events.STATUS_IDLE: lambda event: (event["stop_reason"]["type"], len(event["stop_reason"].get("event_ids", ()))),
    events.SESSION_ERROR: lambda event: (event["error"]["type"], event["error"]["retry_status"]),
}


def describe_comparable(event: Event) -> str:
    """Returns the part of an event that both harnesses must agree on. The text of a result may differ: the CLI's tools
    have their own.
    """
    agreed = _AGREED.get(event["type"])
    return f"{event['type']} {agreed(event) if agreed else ''}".strip()
