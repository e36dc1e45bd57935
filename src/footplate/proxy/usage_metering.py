"""Counts the tokens that a provider reports in a response, while the response is relayed unchanged.

`METERS` lists the wire formats that are counted here. Of the others, only the client's library knows the usage.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from footplate.domain.agents.model_connections import WireFormatName
from footplate.domain.json import as_object
from footplate.proxy.hop_by_hop_headers import Headers

_MAX_LINE: Final = 8 << 20
"""A longer line is not counted. It would have to be kept in memory."""
_DATA: Final = b"data:"
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class MeteredUsage:
    """Tokens of one response. Cached tokens are not part of `input_tokens`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class UsageFormat:
    field: bytes
    """The member of a response that contains the usage, as it is encoded in JSON."""
    read: Callable[[Mapping[str, Any], Mapping[str, Any]], MeteredUsage]
    """Computes the usage from the first and the last message of a response that have this member."""


def _anthropic(first: Mapping[str, Any], last: Mapping[str, Any]) -> MeteredUsage:
    started = as_object(as_object(first.get("message")).get("usage"))
    counts = {**started, **{name: count for name, count in as_object(last.get("usage")).items() if count is not None}}
    return MeteredUsage(
        _count(counts, "input_tokens"),
        _count(counts, "output_tokens"),
        _count(counts, "cache_read_input_tokens"),
        _count(counts, "cache_creation_input_tokens"),
    )


def _openai(_first: Mapping[str, Any], last: Mapping[str, Any]) -> MeteredUsage:
    """Chat Completions and Responses, which differ in the names of the members."""
    counts = as_object(last.get("usage") or as_object(last.get("response")).get("usage"))
    prefix = "prompt" if "prompt_tokens" in counts else "input"
    details = as_object(counts.get(f"{prefix}_tokens_details"))
    read, written = _count(details, "cached_tokens"), _count(details, "cache_write_tokens")
    return MeteredUsage(
        _count(counts, f"{prefix}_tokens") - read - written,
        _count(counts, "completion_tokens" if prefix == "prompt" else "output_tokens"),
        read,
        written,
    )


def _gemini(_first: Mapping[str, Any], last: Mapping[str, Any]) -> MeteredUsage:
    counts = as_object(last.get("usageMetadata"))
    read = _count(counts, "cachedContentTokenCount")
    return MeteredUsage(
        _count(counts, "promptTokenCount") + _count(counts, "toolUsePromptTokenCount") - read,
        _count(counts, "candidatesTokenCount") + _count(counts, "thoughtsTokenCount"),
        read,
    )


METERS: Final[Mapping[WireFormatName, UsageFormat]] = {
    "anthropic": UsageFormat(b'"usage":', _anthropic),
    "openai": UsageFormat(b'"usage":', _openai),
    "gemini": UsageFormat(b'"usageMetadata":', _gemini),
    "mistral": UsageFormat(b'"usage":', _openai),
}


class UsageMeter:
    """Reads the usage from the chunks of one response: a JSON body, or a stream of server-sent events."""

    def __init__(self, usage_format: UsageFormat, *, compressed: bool) -> None:
        self._format = usage_format
        self._decompress = zlib.decompressobj(_GZIP_OR_ZLIB).decompress if compressed else None
        self._line = bytearray()
        self._first = self._last = b""
        self._is_readable = True

    def feed(self, chunk: bytes) -> None:
        if not self._is_readable:
            return
        try:
            data = chunk if self._decompress is None else self._decompress(chunk)
        except zlib.error:
            self._is_readable = False
            return
        head, newline, tail = data.rpartition(b"\n")
        if newline:
            for line in (bytes(self._line) + head).split(b"\n"):
                self._examine(line)
            self._line = bytearray(tail)
        else:
            self._line += data
        if len(self._line) > _MAX_LINE:
            self._is_readable = False
            self._line.clear()

    def read_usage(self) -> MeteredUsage | None:
        """The usage so far. None: the response did not report it, or could not be read."""
        self._examine(bytes(self._line))
        self._line.clear()
        first, last = _parse(self._first), _parse(self._last)
        return self._format.read(first, last) if self._is_readable and last else None

    def _examine(self, line: bytes) -> None:
        if self._format.field in line:
            self._first, self._last = self._first or line, line


def create_meter(wire_format: WireFormatName, headers: Headers) -> UsageMeter | None:
    """Returns a meter for a response with these headers. None: its format or its encoding cannot be read."""
    encoding = next((value for name, value in headers if name == b"content-encoding"), b"identity").lower()
    if wire_format not in METERS or encoding not in {b"identity", b"gzip", b"deflate"}:
        return None
    return UsageMeter(METERS[wire_format], compressed=encoding != b"identity")


def _count(counts: Mapping[str, Any], name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) else 0


def _parse(line: bytes) -> Mapping[str, Any]:
    try:
        return as_object(json.loads(line.removeprefix(_DATA)))
    except ValueError:
        return {}
