"""Limits on the requests, connections and streams of the API's clients.

Each field can be set by an environment variable: `FOOTPLATE_HEADER_BYTES` sets `header_bytes`. Each limit applies to
one API process.
"""

from typing import Final

from pydantic import BaseModel, Field

KIB: Final = 1024
MIB: Final = 1024 * KIB


class RequestLimits(BaseModel):
    """The limits for requests. `docs/limits.md` lists them with the response that each one leads to."""

    header_bytes: int = Field(default=64 * KIB, ge=4 * KIB)
    """Size of the request line with all headers, and of the trailers after a chunked body."""
    header_count: int = Field(default=200, ge=20)
    """Number of headers of a request, and of trailers after a chunked body."""
    header_seconds: float = Field(default=10.0, gt=0)
    """Time from the first byte of a request, or from the connection, until its headers are complete."""
    idle_seconds: int = Field(default=15, ge=1)
    """How long a connection stays open between two requests."""
    write_seconds: float = Field(default=60.0, gt=0)
    """How long a client may stop reading a response before its connection is closed."""
    connections: int = Field(default=4_000, ge=1)
    """Connections in all. The effective limit is lower where the process may open fewer files."""
    connections_per_address: int = Field(default=1_000, ge=1)
    """Connections from one client address; for IPv6, from one /64 network."""
    pipelined_requests: int = Field(default=16, ge=1)
    """Requests that wait on one connection for the response to an earlier one."""
    json_bytes: int = Field(default=4 * MIB, ge=KIB)
    """Size of a JSON body, except of one that carries messages."""
    message_bytes: int = Field(default=32 * MIB, ge=KIB)
    """Size of a JSON body that carries messages, and of one line of an imported transcript."""
    trigger_bytes: int = Field(default=MIB, ge=KIB)
    """Size of a delivery to a trigger."""
    transcript_bytes: int = Field(default=256 * MIB, ge=KIB)
    """Size of an imported transcript, which is buffered on disk while it arrives."""
    body_rate: int = Field(default=KIB, ge=1)
    """Minimum rate at which a body has to arrive, in bytes per second."""
    small_chunks: int = Field(default=2_000, ge=100)
    """Chunks of less than 64 bytes in a chunked body. Larger chunks offset them."""
    buffered_bytes: int = Field(default=256 * MIB, ge=MIB)
    """Memory for large request bodies in all."""
    buffered_bytes_per_key: int = Field(default=64 * MIB, ge=MIB)
    """Memory for large request bodies of one API key."""
    json_depth: int = Field(default=100, ge=8, le=500)
    """Nesting of objects and arrays in a JSON body."""
    json_nodes: int = Field(default=20_000, ge=100)
    """Objects, arrays and values in a JSON body."""
    batch_nodes: int = Field(default=150_000, ge=100)
    """Objects, arrays and values in the JSON body that creates a batch."""
    transcript_nodes: int = Field(default=200_000, ge=100)
    """Objects, arrays and values in one line of an imported transcript."""
    streams: int = Field(default=4_000, ge=1)
    """Open event streams in all, server-sent events and WebSockets together."""
    streams_per_key: int = Field(default=256, ge=1)
    """Open event streams of one API key."""
    socket_frames: int = Field(default=50, ge=1)
    """WebSocket frames that a client may send per second."""


def setting_name(field: str) -> str:
    """Return the environment variable that changes a limit."""
    assert field in RequestLimits.model_fields
    return f"FOOTPLATE_{field.upper()}"
