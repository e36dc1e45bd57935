"""What a model was shown of a conversation, without what the CLI adds on its own."""

from typing import Any, Final

from footplate.domain.json import JsonObject

FILLERS: Final = ("Continue from where you left off.", "No response requested.")
"""What it puts where nobody said anything: after a call that has no result of its own, say."""
OWN_WORDS: Final = ("<system-reminder>", *FILLERS)


def said(request: JsonObject) -> list[tuple[str, str]]:
    """Role and text of everything that somebody said, in order."""
    body: Any = request["body"]
    found = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [block["text"].strip() for block in blocks if block["type"] == "text"]
        found += [(message["role"], text) for text in texts if not text.startswith(OWN_WORDS)]
    return [item for item in found if item[0] != "system"]
