"""Attachments of a message (images, documents, files): decides how each is delivered, converts it to inline content for
a model, or chooses its path as a file.

If the model does not accept an attachment, the error names the model and the attachment. The attachment is never
silently turned into a file, because a user who asks about a picture wants the model to see it.
"""

import base64
import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from footplate.domain.errors import FootplateError, ModelRefused, Permanent
from footplate.domain.files import media_types
from footplate.domain.files.media_types import EXTENSIONS
from footplate.domain.files.uploaded_files import UPLOADS_DIRECTORY, safe_file_name
from footplate.domain.json import Json, JsonObject

MAX_INLINE_BYTES: Final = 24_000_000
"""Maximum inline bytes of one input. In base64 they fit into a request of 32 MB."""
BLOCK_TYPES: Final = frozenset({"image", "document", "file"})
"""The types of content blocks that are attachments."""


class AttachmentDelivery(StrEnum):
    """What happens with an attachment."""

    FILE = "file"
    """The model gets the path of a file in the session's environment."""
    INLINE = "inline"
    """The model gets the content."""
    URL = "url"
    """The model gets the URL, and its provider fetches the content."""


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
        name = safe_file_name(self.name, EXTENSIONS.get(self.media_type, ""))
        return f"{UPLOADS_DIRECTORY}/{self.key or hashlib.sha256(self.data).hexdigest()[:16]}/{name}"


class AttachmentSources(Protocol):
    """Loads attachments that the input only refers to. All methods raise `AttachmentFailed`."""

    async def file_size(self, organisation: str, file_id: str) -> int:
        """Return the size of a file without loading it."""

    async def load_file(self, organisation: str, file_id: str) -> Attachment: ...

    async def fetch_url(self, url: str) -> Attachment: ...

    async def check_url(self, url: str) -> None:
        """Check that the address policy permits the URL, without fetching it."""


def delivery_of(block: JsonObject) -> AttachmentDelivery:
    """Return how the block is delivered. Files are written to the tree unless their content is requested by name.
    Images and documents are blocks of the reference API, whose content the model gets.
    """
    default = AttachmentDelivery.FILE if block.get("type") == "file" else AttachmentDelivery.INLINE
    return AttachmentDelivery(str(block.get("deliver") or default))


def inline_block(attachment: Attachment, block: JsonObject, *, model: str, provider: str) -> JsonObject:
    """Return a content block that contains the bytes, in the reference API's form. Audio and video, which that API does
    not have, stay blocks of type `file`. Raises `AttachmentRefused`.
    """
    block_type = str(block.get("type"))
    media_type = media_types.normalise(attachment.media_type)
    description = {key: block[key] for key in ("title", "context") if block.get(key)}
    if media_types.is_text(media_type) and block_type != "image":
        source: JsonObject = {"type": "text", "media_type": "text/plain", "data": _decode_text(attachment, model)}
        return {"type": "document", "source": source, **description}
    is_image = media_type.startswith("image/")
    is_accepted = media_types.is_accepted_inline(media_type, provider)
    if not is_accepted or (block_type == "image" and not is_image):
        raise _refusal(attachment, model)
    encoded = base64.b64encode(attachment.data).decode("ascii")
    data_source: JsonObject = {"type": "base64", "media_type": media_type, "data": encoded}
    if is_image:
        return {"type": "image", "source": data_source}
    kind = "file" if media_types.is_audio_or_video(media_type) else "document"
    return {"type": kind, "source": data_source, **description}


def url_block(block: JsonObject, *, model: str, provider: str) -> JsonObject:
    """Return a content block with the URL, which the model's provider fetches. Raises `AttachmentRefused`."""
    block_type, source = str(block.get("type")), block.get("source")
    is_accepted = media_types.is_accepted_by_url(block_type, provider)
    if not is_accepted or not isinstance(source, dict) or source.get("type") != "url":
        kind = "an image" if block_type == "image" else "a document"
        raise AttachmentRefused(
            f"The provider of the model {model!r} does not fetch {kind} from a URL.",
            help_text="Let the worker fetch it (`deliver: inline` or `file`), or use a model of another provider.",
        )
    return {key: value for key, value in block.items() if key != "deliver"}


def describe_project_file(path: str, size: int, block: JsonObject) -> JsonObject:
    """Return the text for the model about a file that is in the session's projects already."""
    return _with_context(f"[The user refers to the file {path} ({size} bytes).]", block)


def describe_written_file(attachment: Attachment, path: str, block: JsonObject) -> JsonObject:
    """Return the text for the model about an attachment that was written to a file."""
    text = f"[The user attached a file: {path} ({attachment.media_type}, {len(attachment.data)} bytes).]"
    return _with_context(text, block)


def describe_missing(error: FootplateError, block: JsonObject) -> JsonObject:
    """Return the text for the model in place of an attachment that could not be provided."""
    title = block.get("title")
    label = f" ({title})" if isinstance(title, str) and title else ""
    kind = {"image": "An image", "document": "A document"}.get(str(block.get("type")), "A file")
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


def _with_context(text: str, block: JsonObject) -> JsonObject:
    context = block.get("context")
    return {"type": "text", "text": f"{text}\n{context}" if isinstance(context, str) and context else text}


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
