"""Selects the script for a request, the index of the reply, and the names of the tools in the reply.

A script that is named after the session id has precedence. Otherwise the last marker `[[script:NAME]]` in the user
messages decides, then a marker in the system prompt, then the script `default`. Tool results are not searched, because
a file may contain a marker by accident.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from footplate.domain.json import Json, JsonObject
from footplate.testing import reply_steps as s
from footplate.testing.model_scripts import DEFAULT_SCRIPT
from footplate.testing.wire.wire_format_interface import ConversationMessage

SESSION_HEADERS: Final = ("x-footplate-session", "x-claude-code-session-id")
_MARKER: Final = re.compile(r"\[\[script:([\w.-]+)\]\]")


@dataclass(frozen=True, slots=True)
class Selection:
    script: str
    n: int
    session: str | None
    prompt: str
    conversation: bytes
    """Identifies the conversation, to detect retries: a digest of the session id, or else of the messages."""


def select_script(
    headers: Mapping[str, str], messages: Iterable[ConversationMessage], installed: Collection[str]
) -> Selection:
    session = next((headers[name] for name in SESSION_HEADERS if name in headers), None)
    digest = hashlib.blake2b(session.encode() if session else b"", digest_size=16)
    system: list[str] = []
    marked: str | None = None
    prompt = ""
    total = since = 0
    for role, text in messages:
        if session is None:
            digest.update(f"{role}\x00{text}\x00".encode("utf-8", "surrogatepass"))
        if role == "assistant":
            total, since = total + 1, since + 1
        elif role == "system":
            system.append(text)
        elif role == "user" and text:
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
    return (system[-1], total) if system else (DEFAULT_SCRIPT, total)


def match_tool_names(steps: Sequence[s.Step], request: JsonObject) -> Sequence[s.Step]:
    """Renames tool calls to the names in the request, so that one scenario serves both `bash` and `Bash`."""
    if not any(isinstance(step, s.Tool) for step in steps):
        return steps
    names = _tool_names(request.get("tools"))
    known = {name.casefold(): name for name in names}
    return [
        replace(step, tool=known.get(step.tool.casefold(), step.tool))
        if isinstance(step, s.Tool) and step.tool not in names
        else step
        for step in steps
    ]


def _tool_names(tools: Json) -> list[str]:
    """Returns the tool names in any wire format. OpenAI's Chat Completions nests them one level deeper."""
    given = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    inner = [tool["function"] if isinstance(tool.get("function"), dict) else tool for tool in given]
    return [str(tool["name"]) for tool in inner if isinstance(tool, dict) and "name" in tool]
