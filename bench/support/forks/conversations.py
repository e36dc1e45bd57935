"""Reads a conversation from a model request, and derives the expected one from the log alone, in the same form.

A model response is indivisible: from its first event, all of it is history, including calls that start later. A call
without a result has a result that states this.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.support.claude.request_conversation import CLI_TEXTS
from footplate.domain.sessions import events as ev
from footplate.harness.claude.transcripts import tool_names

ConversationItem = tuple[str, ...]
"""The kind and the text; for a call its id and tool."""

NO_RESULT: Final = "(no result)"
BREAK: Final = "\n\n"
_RESPONSE_EVENTS: Final = frozenset({ev.AGENT_MESSAGE, ev.AGENT_THINKING, ev.MODEL_REQUEST_END})


def expected_conversation(log: Sequence[Mapping[str, Any]], last: int) -> list[ConversationItem]:
    """Derives the conversation from the parent's whole log and the index of the event where it was forked."""
    items: list[ConversationItem] = []
    open_calls: list[str] = []
    for index, event in enumerate(log[: last + 1]):
        match event["type"]:
            case ev.USER_MESSAGE:
                items += [*_close_calls(open_calls), ("user", text_of(event["content"]))]
            case ev.AGENT_TOOL_RESULT:
                open_calls.remove(event["call_id"])
                items.append(("result", event["call_id"], text_of(event["content"])))
            case kind if kind in _RESPONSE_EVENTS and _begins_response(log, index):
                response = _read_response(log, index)
                items += [("agent", text_of(e["content"])) for e in response if e["type"] == ev.AGENT_MESSAGE]
                open_calls = [e["call_id"] for e in response if e["type"] == ev.AGENT_TOOL_USE]
                items += [("call", e["call_id"], e["name"]) for e in response if e["type"] == ev.AGENT_TOOL_USE]
    return [*items, *_close_calls(open_calls)]


def read_conversation(messages: Sequence[Mapping[str, Any]]) -> list[ConversationItem]:
    """Reads the conversation from a request's messages in the format of Anthropic's API, without the CLI's own
    additions.
    """
    items: list[ConversationItem] = []
    for message in messages:
        if message["role"] == "system":
            continue
        role = "agent" if message["role"] == "assistant" else "user"
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "text" if not block["text"].startswith(CLI_TEXTS):
                    items.append((role, block["text"]))
                case "tool_use":
                    items.append(("call", block["id"], tool_names.footplate_name(block["name"])))
                case "tool_result":
                    text = text_of(block["content"]).partition(f"{BREAK}{CLI_TEXTS[0]}")[0]
                    unknown = block.get("is_error") and "no result" in text
                    items.append(("result", block["tool_use_id"], NO_RESULT if unknown else text))
    return items


def join_user_messages(items: Sequence[ConversationItem]) -> list[ConversationItem]:
    """Joins consecutive user messages, which a model receives as one."""
    found: list[ConversationItem] = []
    for item in items:
        if found and item[0] == found[-1][0] == "user":
            found[-1] = ("user", f"{found[-1][1]}{BREAK}{item[1]}")
        else:
            found.append(item)
    return found


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = [block.get("text", "") for block in content]
    return "".join(texts)


def _begins_response(log: Sequence[Mapping[str, Any]], index: int) -> bool:
    """Whether this event is the first one of its response."""
    return log[index - 1]["type"] not in {ev.AGENT_MESSAGE, ev.AGENT_THINKING}


def _read_response(log: Sequence[Mapping[str, Any]], index: int) -> list[Mapping[str, Any]]:
    """Returns the events of the response that begins here, up to the next request or the turn's end."""
    found = []
    for event in log[index:]:
        if event["type"] in {ev.MODEL_REQUEST_START, ev.STATUS_IDLE}:
            break
        found.append(event)
    return found


def _close_calls(open_calls: list[str]) -> list[ConversationItem]:
    closed: list[ConversationItem] = [("result", call_id, NO_RESULT) for call_id in open_calls]
    open_calls.clear()
    return closed
