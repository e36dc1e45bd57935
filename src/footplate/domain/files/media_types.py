"""Media types of attachments: their file extensions, and which of them the models of each provider accept.

The tables of the host are not used, so that a file has the same type and an attachment the same path on every host.
"""

import posixpath
from typing import Final

from footplate.domain.files.uploaded_files import UNKNOWN_TYPE

PDF: Final = "application/pdf"
EXTENSIONS: Final = {
    "application/json": ".json",
    PDF: ".pdf",
    "audio/aac": ".aac",
    "audio/aiff": ".aiff",
    "audio/flac": ".flac",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "video/3gpp": ".3gp",
    "video/mp4": ".mp4",
    "video/mpeg": ".mpeg",
    "video/quicktime": ".mov",
    "video/webm": ".webm",
    "video/x-flv": ".flv",
    "video/x-matroska": ".mkv",
    "video/x-ms-wmv": ".wmv",
}
_TYPES_BY_EXTENSION: Final = {
    **{extension: media_type for media_type, extension in EXTENSIONS.items()},
    ".jpeg": "image/jpeg",
    ".mpg": "video/mpeg",
    ".oga": "audio/ogg",
}
_ALIASES: Final = {
    "audio/mp3": "audio/mpeg",
    "audio/vnd.wave": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-aac": "audio/aac",
    "audio/x-aiff": "audio/aiff",
    "audio/x-flac": "audio/flac",
    "audio/x-wav": "audio/wav",
    "image/jpg": "image/jpeg",
}
_TEXT: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/x-ndjson"})
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_AUDIO: Final = frozenset(media_type for media_type in EXTENSIONS if media_type.startswith("audio/"))
_VIDEO: Final = frozenset(media_type for media_type in EXTENSIONS if media_type.startswith("video/"))
_WAV_AND_MP3: Final = frozenset({"audio/mpeg", "audio/wav"})

_INLINE: Final = {
    "anthropic": _IMAGES | {PDF},
    "openai": _IMAGES | {PDF},
    "openai-chat": _IMAGES | {PDF},
    "openai-responses": _IMAGES | {PDF},
}
"""The types that each provider accepts, except audio and video. To any other provider, pydantic-ai can send images and
PDF files at most."""
_INLINE_AUDIO_AND_VIDEO: Final = {
    "azure": _WAV_AND_MP3,
    "bedrock": _VIDEO,
    "google": _AUDIO | _VIDEO - {"video/x-matroska"},
    "google-cloud": _AUDIO | _VIDEO - {"video/x-matroska"},
    "litellm": _WAV_AND_MP3,
    "openai-chat": _WAV_AND_MP3,
    "openrouter": _WAV_AND_MP3 | _VIDEO,
    "vllm": _WAV_AND_MP3,
}
"""What pydantic-ai can send to each provider. Models of one provider differ: the provider refuses the rest. Any other
provider gets no audio or video."""
_BY_URL: Final = {
    "anthropic": frozenset({"image", "document"}),
    "openai": frozenset({"image", "document"}),
    "openai-chat": frozenset({"image"}),
    "openai-responses": frozenset({"image", "document"}),
    "google-cloud": frozenset({"image", "document"}),
}
"""The blocks whose URLs each provider fetches. For any other provider, pydantic-ai would fetch them in the worker."""


def find_type(path: str, data: bytes) -> str:
    """Return the type of a file by its extension. Any other file is plain text if it is UTF-8."""
    known = _TYPES_BY_EXTENSION.get(posixpath.splitext(path)[1].lower())
    if known is not None:
        return known
    try:
        data.decode()
    except UnicodeDecodeError:
        return UNKNOWN_TYPE
    return "text/plain"


def normalise(media_type: str) -> str:
    return _ALIASES.get(media_type, media_type)


def is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in _TEXT or media_type.endswith(("+json", "+xml"))


def is_audio_or_video(media_type: str) -> bool:
    return media_type.startswith(("audio/", "video/"))


def is_accepted_inline(media_type: str, provider: str) -> bool:
    """Return whether a model of this provider may accept this type."""
    if is_audio_or_video(media_type):
        return media_type in _INLINE_AUDIO_AND_VIDEO.get(provider, frozenset())
    return media_type in _INLINE.get(provider, _IMAGES | {PDF})


def is_accepted_by_url(block_type: str, provider: str) -> bool:
    """Return whether this provider fetches the URL of this kind of content block itself."""
    return block_type in _BY_URL.get(provider, frozenset())
