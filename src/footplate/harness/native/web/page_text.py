"""Converts a downloaded page to text for a model: HTML to Markdown, text and JSON unchanged.

Other content types are rejected.
"""

import codecs
import re
from typing import Final

from footplate.domain.json import clean_text
from footplate.harness.native.tool_failure_error import ToolFailure
from footplate.harness.native.web import html_conversion
from footplate.harness.native.web.download import Download

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = re.compile(
    r"text/.+|application/(.+\+)?(json|xml|yaml|toml|javascript)|application/(x-ndjson|x-yaml|jsonl)"
)
_DECLARED: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_ENCODING_XML: Final = re.compile(rb"""^<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]+)""")
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SNIFFED_BYTES: Final = 2048
_FIRST_ERROR: Final = 400
_MAX_ERROR_LENGTH: Final = 2_000


async def page_to_text(download: Download) -> str:
    media_type, charset = _content_type(download)
    if download.status >= _FIRST_ERROR:
        raise ToolFailure(await _error_message(download, media_type, charset))
    if not _is_text(download, media_type):
        raise ToolFailure(
            f"{download.url} has the type {media_type}. web_fetch reads only HTML, text, JSON and XML. "
            "To get the file itself, download it with a command."
        )
    title, text = await _text(download, media_type, charset)
    head = [f"{download.url} ({media_type}, {len(download.data)} bytes)"]
    if download.is_truncated:
        head.append(f"[truncated: only the first {len(download.data)} bytes were read]")
    if title:
        head.append(f"Title: {title}")
    return "\n".join([*head, "", text.strip() or "[no text]"])


async def _text(download: Download, media_type: str, charset: str) -> tuple[str, str]:
    text = clean_text(_decode(download.data, charset))
    if media_type in _HTML:
        return await html_conversion.to_markdown(text, download.url)
    return "", text


async def _error_message(download: Download, media_type: str, charset: str) -> str:
    """The error message with the start of the response body, which often says what to do instead."""
    line = f"{download.url} responded with {download.status} {download.reason}".rstrip() + "."
    if not download.data or not _is_text(download, media_type):
        return line
    _, text = await _text(download, media_type, charset)
    return f"{line}\n\n{text.strip()[:_MAX_ERROR_LENGTH]}".rstrip()


def _content_type(download: Download) -> tuple[str, str]:
    """The media type and the encoding. If the header lacks one, it is guessed like in a browser."""
    value = download.headers.get("content-type", "")
    media_type, _, parameters = value.partition(";")
    named = re.search(r"charset\s*=\s*\"?([\w.:-]+)", parameters, re.IGNORECASE)
    charset = named[1] if named else _declared_encoding(download.data)
    return media_type.strip().lower() or "text/plain", charset


def _declared_encoding(data: bytes) -> str:
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return name
    start = data[:_SNIFFED_BYTES]
    found = _DECLARED.search(start) or _ENCODING_XML.search(start)
    return found[1].decode("ascii") if found else "utf-8"


def _is_text(download: Download, media_type: str) -> bool:
    wide = _declared_encoding(download.data).startswith("utf-16")
    return bool(_TEXT.fullmatch(media_type)) and (wide or b"\x00" not in download.data[:_SNIFFED_BYTES])


def _decode(data: bytes, charset: str) -> str:
    """Decodes the page. A wrong or unknown encoding may garble some characters but never fails."""
    try:
        return data.decode(charset, "replace")
    except (LookupError, ValueError):
        return data.decode("utf-8", "replace")
