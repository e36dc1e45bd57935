"""Converts content blocks of the API to the content types of pydantic-ai, and back."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    FileUrl,
    ImageUrl,
    ModelRequestPart,
    UserContent,
    UserPromptPart,
)

from footplate.domain.errors import ModelRefused
from footplate.domain.files import media_types
from footplate.domain.files.media_types import PDF
from footplate.domain.json import Json, JsonObject


def to_model_content(blocks: Sequence[Json]) -> str | list[UserContent]:
    """The blocks as pydantic-ai content. Plain text becomes a string, the shortest form and one every model accepts."""
    items = [_to_model_item(block) for block in blocks if isinstance(block, dict)]
    texts = [item for item in items if isinstance(item, str)]
    return "\n\n".join(texts) if len(texts) == len(items) else items


def binary_block(data: bytes, media_type: str) -> JsonObject:
    kind = "image" if media_type.startswith("image/") else "document"
    encoded = base64.b64encode(data).decode("ascii")
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": encoded}}


@dataclass(frozen=True, slots=True)
class SpecialContent:
    """Content of a prompt that only some providers accept."""

    kind: str
    """The media type of audio or video, or the type of the content block of a URL."""
    is_url: bool

    @property
    def description(self) -> str:
        article = "an" if self.kind == "image" else "a"
        return f"{article} {self.kind} with a URL" if self.is_url else f"content of type {self.kind}"

    def is_accepted_by(self, provider: str) -> bool:
        is_accepted = media_types.is_accepted_by_url if self.is_url else media_types.is_accepted_inline
        return is_accepted(self.kind, provider)


def find_special_content(part: ModelRequestPart) -> set[SpecialContent]:
    if not isinstance(part, UserPromptPart) or isinstance(part.content, str):
        return set()
    found = set()
    for item in part.content:
        if isinstance(item, FileUrl):
            found.add(SpecialContent("image" if isinstance(item, ImageUrl) else "document", is_url=True))
        elif isinstance(item, BinaryContent) and media_types.is_audio_or_video(item.media_type):
            found.add(SpecialContent(item.media_type, is_url=False))
    return found


def _to_model_item(block: JsonObject) -> UserContent:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text") or "")
    if kind == "search_result":
        return _search_result_text(block)
    source = block.get("source")
    if kind in {"image", "document", "file"} and isinstance(source, dict):
        return _from_source(str(kind), source)
    raise ModelRefused(f"Content of type {kind!r} cannot be sent to a model.")


def _from_source(kind: str, source: JsonObject) -> UserContent:
    match source.get("type"):
        case "text":
            return str(source.get("data") or "")
        case "base64":
            return BinaryContent(_decode(str(source.get("data") or "")), media_type=str(source.get("media_type")))
        case "url":
            url = str(source.get("url"))
            return ImageUrl(url) if kind == "image" else DocumentUrl(url, media_type=PDF)
        case other:
            raise ModelRefused(f"The harness 'native' does not support a source of type {other!r}.")


def _search_result_text(block: JsonObject) -> str:
    content = block.get("content")
    texts = [str(item.get("text")) for item in content if isinstance(item, dict)] if isinstance(content, list) else []
    return "\n".join([f"{block.get('title')} ({block.get('source')})", *texts])


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ModelRefused(f"An attachment is not valid base64: {error}") from error
