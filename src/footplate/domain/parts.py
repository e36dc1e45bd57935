"""The parts of an input that are no text (K8): what a model takes as it is, and what a file of them is called. Pure.

What a model does not take is an error that names both, never a silent file instead: who asks about a picture wants it
to be seen.
"""

import base64
import hashlib
from dataclasses import dataclass
from typing import Final, Protocol

from footplate.domain.errors import FootplateError, ModelRefused, Permanent
from footplate.domain.files import UPLOADS, name_of
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
"""Of parts without a name. Not the machine's own list: a part has the same path on every host."""
MOST_INLINE: Final = 24_000_000
"""Bytes of one input that a model is given as they are: in base64 they fit into a request of 32 MB."""
PDF: Final = "application/pdf"
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_TEXTS: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/x-ndjson"})
_CLAUDE: Final = "claude"
_PROVIDERS: Final = {
    "anthropic": _IMAGES | {PDF},
    "openai": _IMAGES | {PDF},
    "openai-chat": _IMAGES | {PDF},
    "openai-responses": _IMAGES | {PDF},
}
"""Of others nobody here knows; they say so themselves."""


class PartFailed(Permanent):
    """A part of the input cannot be had: its file is gone, or its URL does not answer."""

    code = "attachment_failed"


class NotTaken(ModelRefused):
    code = "attachment_refused"


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes of a block, wherever they came from."""

    data: bytes
    media_type: str
    name: str
    """As a client calls it; may be empty."""
    key: str = ""
    """Which it is called by among others of the same name; empty: by its content."""

    @property
    def path(self) -> str:
        """Below the working directory. The same part is at the same path, however often it is written."""
        name = name_of(self.name, _EXTENSIONS.get(self.media_type, ""))
        return f"{UPLOADS}/{self.key or hashlib.sha256(self.data).hexdigest()[:16]}/{name}"


class Sources(Protocol):
    """Where bytes come from that are not in the input. All raise `PartFailed`."""

    async def size(self, organisation: str, file_id: str) -> int:
        """Of a file, which is not loaded for it."""

    async def file(self, organisation: str, file_id: str) -> Part: ...

    async def url(self, url: str) -> Part: ...


def is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in _TEXTS or media_type.endswith(("+json", "+xml"))


def inline(part: Part, block: JsonObject, *, harness: str, model: str) -> JsonObject:
    """A block with the bytes in it, in the reference's form. Raises `NotTaken`."""
    wanted = str(block.get("type"))
    about = {key: block[key] for key in ("title", "context") if block.get(key)}
    if is_text(part.media_type) and wanted == "document":
        source: JsonObject = {"type": "text", "media_type": "text/plain", "data": _text(part, model)}
        return {"type": "document", "source": source, **about}
    is_image = part.media_type.startswith("image/")
    if not _takes(part.media_type, harness=harness, model=model) or (wanted == "image" and not is_image):
        raise _not_taken(part, model)
    encoded = base64.b64encode(part.data).decode("ascii")
    bytes_of: JsonObject = {"type": "base64", "media_type": part.media_type, "data": encoded}
    return {"type": "image", "source": bytes_of} if is_image else {"type": "document", "source": bytes_of, **about}


def told(part: Part, path: str, block: JsonObject) -> JsonObject:
    """What the model is told of a part that was written to a file."""
    context = block.get("context")
    text = f"[The user attached a file: {path} ({part.media_type}, {len(part.data)} bytes).]"
    return {"type": "text", "text": f"{text}\n{context}" if isinstance(context, str) and context else text}


def missing(error: FootplateError, block: JsonObject) -> JsonObject:
    """What the model is told in the place of a part that it was not given."""
    title = block.get("title")
    called = f" ({title})" if isinstance(title, str) and title else ""
    kind = "An image" if block.get("type") == "image" else "A document"
    text = f"[{kind}{called} that the user attached here is missing, tell them: {error.advice}]"
    return {"type": "text", "text": text}


def not_inherited(path: str, error: FootplateError) -> JsonObject:
    """What the model is told of a parent's file that is not in the fork's tree and cannot be put there."""
    text = (
        f"[The file {path} of the session that this one was forked from is missing here, tell the user: {error.advice}]"
    )
    return {"type": "text", "text": text}


class Inline:
    """What an input gives to the model as it is, counted while its blocks are made ready: what is too much is refused
    before it is loaded, where its size is known, and in any case before the next block is.
    """

    def __init__(self) -> None:
        self._size = 0

    def announce(self, size: int) -> None:
        """Of a block that comes next. Raises `NotTaken`."""
        if self._size + size > MOST_INLINE:
            raise NotTaken(
                f"The input has {self._size + size} bytes or more that the model is to be given as they are, text "
                f"included, and at most {MOST_INLINE} are.",
                help_text="Deliver large parts as files: `deliver: file`.",
            )

    def add(self, block: JsonObject) -> None:
        """One that is ready. Raises `NotTaken`."""
        size = length(block)
        self.announce(size)
        self._size += size


def length(block: JsonObject) -> int:
    """Bytes that a block has in it: its text, or those of its source, which is 0 for one that only names them."""
    source = block.get("source")
    if not isinstance(source, dict):
        return _bytes_of(block.get("text"))
    data = source.get("data")
    if source.get("type") == "base64" and isinstance(data, str):
        return len(data) * 3 // 4 - data[-2:].count("=")
    return _bytes_of(data)


def _bytes_of(text: Json) -> int:
    if not isinstance(text, str):
        return 0
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _takes(media_type: str, *, harness: str, model: str) -> bool:
    provider = "anthropic" if harness == _CLAUDE or ":" not in model else model.partition(":")[0]
    known = _PROVIDERS.get(provider)
    return known is None or media_type in known


def _text(part: Part, model: str) -> str:
    try:
        return part.data.decode("utf-8")
    except UnicodeDecodeError:
        raise _not_taken(part, model, " that is no UTF-8") from None


def _not_taken(part: Part, model: str, how: str = "") -> NotTaken:
    called = f" ({part.name})" if part.name else ""
    return NotTaken(
        f"The model {model!r} does not take {part.media_type}{how} inline{called}.",
        help_text="Deliver it as a file (`deliver: file`, or `footplate run --file`), or choose a model that takes it.",
    )
