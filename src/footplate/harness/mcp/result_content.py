"""Converts the result of an MCP tool call to content blocks for events and models."""

import json
from collections.abc import Sequence
from typing import Final

from mcp import types

from footplate.domain.json import Json, JsonObject, clean, clean_text
from footplate.domain.sessions.events import text_block

TEXT_LIMIT: Final = 30_000
"""Maximum characters of text in one result. The built-in tools have the same limit."""
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PDF: Final = "application/pdf"


def to_blocks(result: types.CallToolResult) -> list[Json]:
    found = [_to_block(item) for item in result.content]
    if not found and result.structured_content is not None:
        found = [text_block(json.dumps(result.structured_content, ensure_ascii=False))]
    return [clean(block) for block in _truncate(found)] or [text_block("(no content)")]


def text_blocks(text: str) -> list[Json]:
    return [*_truncate([text_block(clean_text(text))])]


def _to_block(item: types.ContentBlock) -> JsonObject:  # noqa: PLR0911 - one case per content type
    match item:
        case types.TextContent(text=text):
            return text_block(text)
        case types.ImageContent(data=data, mime_type=kind) if kind in _IMAGES:
            return _attachment_block("image", kind, data)
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return text_block(text)
        case types.EmbeddedResource(resource=types.BlobResourceContents(blob=data, mime_type=kind, uri=uri)):
            if kind in _IMAGES:
                return _attachment_block("image", str(kind), data)
            return _attachment_block("document", _PDF, data) if kind == _PDF else _omitted_block(f"{uri} ({kind})")
        case types.ResourceLink(uri=uri, name=name):
            return text_block(f"{name}: {uri}")
        case _:
            return _omitted_block(item.type)


def _attachment_block(kind: str, media_type: str, data: str) -> JsonObject:
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def _omitted_block(description: str) -> JsonObject:
    return text_block(f"[omitted: {description}, which the model cannot read]")


def _truncate(found: Sequence[JsonObject]) -> list[JsonObject]:
    """Limits the total text of all blocks. If it is too long, one block holds its beginning and its end."""
    texts = [str(block["text"]) for block in found if block["type"] == "text"]
    over = sum(len(text) for text in texts) - TEXT_LIMIT
    if over <= 0:
        return [*found]
    half = TEXT_LIMIT // 2
    whole = "\n".join(texts)
    cut = f"{whole[:half]}\n\n[… {len(whole) - 2 * half} characters omitted …]\n\n{whole[-half:]}"
    return [text_block(cut), *(block for block in found if block["type"] != "text")]
