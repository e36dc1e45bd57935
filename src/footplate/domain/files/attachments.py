"""Attachments of a message (images, documents, files): converts them to inline content for a model, or chooses their
paths as files.

If the model does not accept an attachment, the error names the model and the attachment. The attachment is never
silently turned into a file, because a user who asks about a picture wants the model to see it.
"""

import base64
import hashlib
from dataclasses import dataclass
from typing import Final, Protocol

from footplate.domain.errors import FootplateError, ModelRefused, Permanent
from footplate.domain.files.uploaded_files import UPLOADS_DIRECTORY, safe_file_name
from footplate.domain.json import Json, JsonObject

_EXTENSIONS: Final = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
}
"""File extensions for attachments without a name. The host's own list is not used, so that an attachment has the same
path on every host."""
MAX_INLINE_BYTES: Final = 24_000_000
"""Maximum inline bytes of one input. In base64 they fit into a request of 32 MB."""
PDF: Final = "application/pdf"
_IMAGE_MEDIA_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_TEXT_MEDIA_TYPES: Final = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-ndjson"}
)
_CLAUDE_HARNESS: Final = "claude"
_PROVIDER_MEDIA_TYPES: Final = {
    "anthropic": _IMAGE_MEDIA_TYPES | {PDF},
    "openai": _IMAGE_MEDIA_TYPES | {PDF},
    "openai-chat": _IMAGE_MEDIA_TYPES | {PDF},
    "openai-responses": _IMAGE_MEDIA_TYPES | {PDF},
}
"""Media types that each provider accepts. Other providers are not checked here; they report unsupported types."""


class AttachmentFailed(Permanent):
    """An attachment cannot be loaded: its file is gone, or its URL does not respond."""

    code = "attachment_failed"


class AttachmentRefused(ModelRefused):
    code = "attachment_refused"


@dataclass(frozen=True, slots=True)
class Attachment:
    """The bytes of a content block, from any source."""

    data: bytes
    media_type: str
    name: str
    """The client's name for it. May be empty."""
    key: str = ""
    """Distinguishes attachments of the same name. Empty: a hash of the content is used."""

    @property
    def path(self) -> str:
        """The path relative to the working directory. The same attachment always has the same path."""
        name = safe_file_name(self.name, _EXTENSIONS.get(self.media_type, ""))
        return f"{UPLOADS_DIRECTORY}/{self.key or hashlib.sha256(self.data).hexdigest()[:16]}/{name}"


class AttachmentSources(Protocol):
    """Loads attachments that the input only refers to. All methods raise `AttachmentFailed`."""

    async def file_size(self, organisation: str, file_id: str) -> int:
        """Return the size of a file without loading it."""

    async def load_file(self, organisation: str, file_id: str) -> Attachment: ...

    async def fetch_url(self, url: str) -> Attachment: ...


def is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in _TEXT_MEDIA_TYPES or media_type.endswith(("+json", "+xml"))


def inline_block(attachment: Attachment, block: JsonObject, *, harness: str, model: str) -> JsonObject:
    """Return a content block that contains the bytes, in the reference API's form. Raises `AttachmentRefused`."""
    block_type = str(block.get("type"))
    description = {key: block[key] for key in ("title", "context") if block.get(key)}
    if is_text(attachment.media_type) and block_type == "document":
        source: JsonObject = {"type": "text", "media_type": "text/plain", "data": _decode_text(attachment, model)}
        return {"type": "document", "source": source, **description}
    is_image = attachment.media_type.startswith("image/")
    if not _accepts(attachment.media_type, harness=harness, model=model) or (block_type == "image" and not is_image):
        raise _refusal(attachment, model)
    encoded = base64.b64encode(attachment.data).decode("ascii")
    data_source: JsonObject = {"type": "base64", "media_type": attachment.media_type, "data": encoded}
    return (
        {"type": "image", "source": data_source}
        if is_image
        else {"type": "document", "source": data_source, **description}
    )


def describe_written_file(attachment: Attachment, path: str, block: JsonObject) -> JsonObject:
    """Return the text for the model about an attachment that was written to a file."""
    context = block.get("context")
    text = f"[The user attached a file: {path} ({attachment.media_type}, {len(attachment.data)} bytes).]"
    return {"type": "text", "text": f"{text}\n{context}" if isinstance(context, str) and context else text}


def describe_missing(error: FootplateError, block: JsonObject) -> JsonObject:
    """Return the text for the model in place of an attachment that could not be provided."""
    title = block.get("title")
    label = f" ({title})" if isinstance(title, str) and title else ""
    kind = "An image" if block.get("type") == "image" else "A document"
    text = f"[{kind}{label} that the user attached here could not be loaded. Tell the user: {error.advice}]"
    return {"type": "text", "text": text}


def describe_not_inherited(path: str, error: FootplateError) -> JsonObject:
    """Return the text for the model about a parent's file that could not be added to the fork's tree."""
    text = f"[The file {path} could not be copied from the parent session. Tell the user: {error.advice}]"
    return {"type": "text", "text": text}


class InlineBudget:
    """Counts the inline bytes of an input while its blocks are prepared, and refuses an input that is too large.

    A block whose size is known is refused before it is loaded, any other before the next block is prepared.
    """

    def __init__(self) -> None:
        self._size = 0

    def check_fits(self, size: int) -> None:
        """Check that a block of this size still fits. Raises `AttachmentRefused`."""
        if self._size + size > MAX_INLINE_BYTES:
            raise AttachmentRefused(
                f"The input has at least {self._size + size} bytes of inline content, including text; the limit is "
                f"{MAX_INLINE_BYTES} bytes.",
                help_text="Send large attachments as files: `deliver: file`.",
            )

    def add(self, block: JsonObject) -> None:
        """Count a prepared block. Raises `AttachmentRefused`."""
        size = content_bytes(block)
        self.check_fits(size)
        self._size += size


def content_bytes(block: JsonObject) -> int:
    """Return the bytes that a block contains: its text or its source data. 0 if the block only refers to its data."""
    source = block.get("source")
    if not isinstance(source, dict):
        return _text_bytes(block.get("text"))
    data = source.get("data")
    if source.get("type") == "base64" and isinstance(data, str):
        return len(data) * 3 // 4 - data[-2:].count("=")
    return _text_bytes(data)


def _text_bytes(text: Json) -> int:
    if not isinstance(text, str):
        return 0
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _accepts(media_type: str, *, harness: str, model: str) -> bool:
    provider = "anthropic" if harness == _CLAUDE_HARNESS or ":" not in model else model.partition(":")[0]
    known = _PROVIDER_MEDIA_TYPES.get(provider)
    return known is None or media_type in known


def _decode_text(attachment: Attachment, model: str) -> str:
    try:
        return attachment.data.decode("utf-8")
    except UnicodeDecodeError:
        raise _refusal(attachment, model, " that is not UTF-8") from None


def _refusal(attachment: Attachment, model: str, detail: str = "") -> AttachmentRefused:
    label = f" ({attachment.name})" if attachment.name else ""
    return AttachmentRefused(
        f"The model {model!r} does not accept {attachment.media_type}{detail} inline{label}.",
        help_text="Send it as a file (`deliver: file`, or `footplate run --file`), or use a model that accepts it.",
    )
