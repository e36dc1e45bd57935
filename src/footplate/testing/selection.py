"""Which script answers a request, and at which index: pure functions of headers and body.

A script is chosen by the session's id when one of that name is installed; else by the last marker `[[script:NAME]]` in
what users said; else by one in the system prompt; else it is `default`. Tool results are not searched: a file that
happens to hold a marker must not change the script.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from footplate.domain.json import Json, JsonObject
from footplate.testing.scripts import DEFAULT

SESSION_HEADERS: Final = ("x-footplate-session", "x-claude-code-session-id")
_MARKER: Final = re.compile(r"\[\[script:([\w.-]+)\]\]")


@dataclass(frozen=True, slots=True)
class Selection:
    script: str
    n: int
    session: str | None
    prompt: str
    conversation: bytes
    """Tells one conversation's retry from another conversation: the session's id, or what was said so far."""


def select(headers: Mapping[str, str], body: JsonObject, installed: Collection[str]) -> Selection:
    session = next((headers[name] for name in SESSION_HEADERS if name in headers), None)
    messages = list(_messages(body))
    digest = hashlib.blake2b(session.encode() if session else b"", digest_size=16)
    system = [_text(body.get("system"))]
    marked: str | None = None
    prompt = ""
    total = since = 0
    for role, content in messages:
        text = _text(content)
        if session is None:
            digest.update(f"{role}\x00{text}\x00".encode("utf-8", "surrogatepass"))
        if role == "assistant":
            total, since = total + 1, since + 1
        elif role == "system":
            system.append(text)
        elif text:
            prompt = text
            if names := _MARKER.findall(text):
                marked, since = names[-1], 0
    script, n = _choose(session, installed, marked, since, _MARKER.findall("\n".join(system)), total)
    return Selection(script, n, session, prompt, digest.digest())


def _choose(
    session: str | None, installed: Collection[str], marked: str | None, since: int, system: list[str], total: int
) -> tuple[str, int]:
    if session is not None and session in installed:
        return session, total
    if marked is not None:
        return marked, since
    return (system[-1], total) if system else (DEFAULT, total)


def _messages(body: JsonObject) -> Iterator[tuple[str, Json]]:
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict):
            yield str(message.get("role")), message.get("content")


def _text(content: Json) -> str:
    """The text of a string or of a list of blocks, tool results left out."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(b.get("text")) for b in blocks if isinstance(b, dict) and b.get("type") == "text")
