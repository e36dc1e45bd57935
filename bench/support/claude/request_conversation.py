"""Reads the conversation from a model request, without the CLI's own additions."""

from typing import Any, Final

from footplate.domain.json import JsonObject

FILLERS: Final = ("Continue from where you left off.", "No response requested.")
"""Texts that the CLI inserts where a message is missing, for example after a call without a result."""
CLI_TEXTS: Final = ("<system-reminder>", *FILLERS)


def read_conversation(request: JsonObject) -> list[tuple[str, str]]:
    """Returns the role and text of each message, in order."""
    body: Any = request["body"]
    found: list[tuple[str, str]] = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [block["text"].strip() for block in blocks if block["type"] == "text"]
        found += [(message["role"], text) for text in texts if not text.startswith(CLI_TEXTS)]
    return [item for item in found if item[0] != "system"]
