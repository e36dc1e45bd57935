"""Reads a conversation from a model request, and derives the expected one from the log alone, in the same form.

A model response is indivisible: from its first event, all of it is history, including calls that start later. A call
without a result has a result that states this.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.support.claude.history import OWN_WORDS
from footplate.domain import events as ev
from footplate.harness.claude import tool_names

Said = tuple[str, ...]
"""The kind and the text; for a call its id and tool."""

NO_RESULT: Final = "(no result)"
BREAK: Final = "\n\n"
_SAYS: Final = frozenset({ev.AGENT_MESSAGE, ev.AGENT_THINKING, ev.MODEL_REQUEST_END})


def expected(log: Sequence[Mapping[str, Any]], last: int) -> list[Said]:
    """Derives the conversation from the parent's whole log and the index of the event where it was forked."""
    said: list[Said] = []
    open_calls: list[str] = []
    for index, event in enumerate(log[: last + 1]):
        match event["type"]:
            case ev.USER_MESSAGE:
                said += [*_closed(open_calls), ("user", text_of(event["content"]))]
            case ev.AGENT_TOOL_RESULT:
                open_calls.remove(event["call_id"])
                said.append(("result", event["call_id"], text_of(event["content"])))
            case kind if kind in _SAYS and _begins(log, index):
                response = _response(log, index)
                said += [("agent", text_of(e["content"])) for e in response if e["type"] == ev.AGENT_MESSAGE]
                open_calls = [e["call_id"] for e in response if e["type"] == ev.AGENT_TOOL_USE]
                said += [("call", e["call_id"], e["name"]) for e in response if e["type"] == ev.AGENT_TOOL_USE]
    return [*said, *_closed(open_calls)]


def told(messages: Sequence[Mapping[str, Any]]) -> list[Said]:
    """Reads the conversation from a request's messages in the format of Anthropic's API, without the CLI's own
    additions.
    """
    said: list[Said] = []
    for message in messages:
        if message["role"] == "system":
            continue
        who = "agent" if message["role"] == "assistant" else "user"
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "text" if not block["text"].startswith(OWN_WORDS):
                    said.append((who, block["text"]))
                case "tool_use":
                    said.append(("call", block["id"], tool_names.footplate_name(block["name"])))
                case "tool_result":
                    text = text_of(block["content"]).partition(f"{BREAK}{OWN_WORDS[0]}")[0]
                    unknown = block.get("is_error") and "no result" in text
                    said.append(("result", block["tool_use_id"], NO_RESULT if unknown else text))
    return said


def joined(said: Sequence[Said]) -> list[Said]:
    """Joins consecutive user messages, which a model receives as one."""
    found: list[Said] = []
    for item in said:
        if found and item[0] == found[-1][0] == "user":
            found[-1] = ("user", f"{found[-1][1]}{BREAK}{item[1]}")
        else:
            found.append(item)
    return found


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def _begins(log: Sequence[Mapping[str, Any]], index: int) -> bool:
    """Whether this event is the first one of its response."""
    return log[index - 1]["type"] not in {ev.AGENT_MESSAGE, ev.AGENT_THINKING}


def _response(log: Sequence[Mapping[str, Any]], index: int) -> list[Mapping[str, Any]]:
    """Returns the events of the response that begins here, up to the next request or the turn's end."""
    found = []
    for event in log[index:]:
        if event["type"] in {ev.MODEL_REQUEST_START, ev.STATUS_IDLE}:
            break
        found.append(event)
    return found


def _closed(open_calls: list[str]) -> list[Said]:
    closed: list[Said] = [("result", call_id, NO_RESULT) for call_id in open_calls]
    open_calls.clear()
    return closed
