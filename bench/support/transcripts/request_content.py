"""Extracts the conversation from a model request: texts, calls and results, without the CLI's own reminders."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from bench.support.claude.request_conversation import FILLERS

RequestItem = tuple[str, str]
"""A kind and its text."""
_REMINDER_TAG: Final = "<system-reminder>"


def request_items(request: Any) -> list[RequestItem]:
    found: list[RequestItem] = []
    for message in request["body"]["messages"]:
        if message["role"] != "system":
            found += [item for item in _blocks(message["role"], message["content"]) if item[1]]
    return found


def _blocks(role: str, content: Any) -> Iterator[RequestItem]:
    blocks: Iterable[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        match block["type"]:
            case "text":
                text = _remove_reminders(block["text"])
                yield role, "" if text in FILLERS else text
            case "tool_use":
                yield "call", f"{block['id']} {block['name']} {sorted(block['input'].items())}"
            case "tool_result":
                inside = [text for _, text in _blocks("", block.get("content") or "")]
                yield "result", f"{block['tool_use_id']} {' '.join(inside)}".strip()
            case "image":
                yield "image", str(block["source"].get("data"))[:64]


def _remove_reminders(text: str) -> str:
    """Removes the CLI's reminders, which stand before or after the user's text, or alone."""
    while _REMINDER_TAG in text:
        before, _, rest = text.partition(_REMINDER_TAG)
        text = before + rest.partition("</system-reminder>")[2]
    return text.strip()


def first_difference(found: list[RequestItem], wanted: list[RequestItem]) -> str | None:
    if found == wanted:
        return None
    at = next((n for n, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(found), len(wanted)) if at is None else at
    shown, missed = ([*map(str, items[at : at + 1]), "nothing"][0][:160] for items in (found, wanted))
    return f"of {len(wanted)} items, number {at} is {shown} instead of {missed}"
