"""The wire formats whose tokens the model proxy counts itself, with the replies of the scripted model."""

import gzip
from collections.abc import Sequence

import pytest

from footplate.domain.agents.model_connections import PROVIDERS
from footplate.domain.json import JsonObject
from footplate.proxy import usage_metering
from footplate.proxy.usage_metering import METERS, MeteredUsage, UsageMeter
from footplate.testing import Step, text, tool, usage
from footplate.testing.server.reply_playback import ReplyPlayback
from footplate.testing.wire import find_format

PATHS = {
    "anthropic": ("anthropic", "/v1/messages"),
    "openai chat": ("openai", "/v1/chat/completions"),
    "openai responses": ("openai", "/v1/responses"),
    "gemini": ("gemini", "/v1/models/gemini-2.5-flash:streamGenerateContent"),
    "mistral": ("mistral", "/mistral/v1/chat/completions"),
}
"""Wire format and path by API."""
REQUEST: JsonObject = {"model": "m", "stream_options": {"include_usage": True}}
STEPS: Sequence[Step] = [
    text('The text "usage": {"input_tokens": 9} is not a usage.', chunks=3),
    tool("bash", {"command": "true"}),
    usage(1000, 100, cache_read=500),
]
EXPECTED = MeteredUsage(1000, 100, 500, 0)
APIS = pytest.mark.parametrize("api", PATHS)


def play(api: str) -> tuple[bytes, bytes]:
    """Returns the reply as a stream and as one body."""
    wire = find_format(PATHS[api][1])
    assert wire is not None
    playback = ReplyPlayback(wire, STEPS, REQUEST)
    stream = b"".join(piece for piece in playback.play() if isinstance(piece, bytes))
    return stream, playback.full_response()


def meter(api: str, data: bytes, *, size: int = 7, encoding: bytes = b"identity") -> MeteredUsage | None:
    found = usage_metering.create_meter(PATHS[api][0], [(b"content-encoding", encoding)])  # pyrefly: ignore[bad-argument-type]
    assert found is not None
    for start in range(0, len(data), size):
        found.feed(data[start : start + size])
    return found.read_usage()


def test_the_table_of_metered_formats() -> None:
    formats = {provider.wire_format for provider in PROVIDERS.values()}
    assert METERS.keys() == {wire_format for wire_format, _ in PATHS.values()}
    assert formats - METERS.keys() == {"bedrock"}, "its streams are binary: the library's usage is used"
    assert usage_metering.create_meter("bedrock", []) is None


@APIS
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_the_usage_of_a_stream_is_read_at_any_chunk_size(api: str, size: int) -> None:
    assert meter(api, play(api)[0], size=size) == EXPECTED


@APIS
def test_the_usage_of_a_complete_body_is_read(api: str) -> None:
    body = play(api)[1]
    # Anthropic's complete message has its usage at another place than the first event of a stream.
    assert meter(api, body) == EXPECTED


@APIS
def test_compressed_responses_are_read(api: str) -> None:
    assert meter(api, gzip.compress(play(api)[0]), encoding=b"gzip") == EXPECTED


def test_an_unknown_encoding_is_not_read() -> None:
    assert usage_metering.create_meter("openai", [(b"content-encoding", b"br")]) is None


@pytest.mark.parametrize("data", [b"", b'data: {"choices": []}\n\n', b'data: {"usage": \n\n', b"\xff\x00"])
def test_a_response_without_usage_has_none(data: bytes) -> None:
    assert meter("openai chat", data) is None


def test_a_response_that_was_cut_has_what_was_reported() -> None:
    stream = play("anthropic")[0]
    found = meter("anthropic", stream[: stream.index(b"content_block_start")])
    assert found == MeteredUsage(1000, 1, 500, 0)


def test_a_line_without_an_end_is_not_read() -> None:
    found = UsageMeter(METERS["openai"], compressed=False)
    for _ in range(9):
        found.feed(b"x" * (1 << 20))
    assert found.read_usage() is None


def test_damaged_compression_is_not_read() -> None:
    assert meter("openai chat", b"not gzip at all, but long enough", encoding=b"gzip") is None
