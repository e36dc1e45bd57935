"""Defines the names of Redis keys and channels. Each session id maps to one of 64 shards. The keys of a shard share a
hash tag, so that a Redis cluster stores them on the same node.
"""

import zlib
from typing import Final

SHARDS: Final = 64
NUDGE_CHANNEL: Final = "footplate:nudges"
FEED_ANNOUNCEMENT: Final = "feeds: "
"""Start of a message that names the organisations whose feeds have readers."""


def shard_of(session_id: str) -> int:
    return zlib.crc32(session_id.encode()) % SHARDS


def stream_key(shard: int) -> str:
    return f"footplate:live:{{{shard:02}}}"


def feed_channel(organisation: str) -> str:
    return f"footplate:feed:{organisation}"


def open_streams_key(organisation: str, member_id: str | None = None) -> str:
    """The keys of an organisation share a hash tag, like those of a shard."""
    return f"footplate:streams:{{{organisation}}}:{member_id or ''}"


def open_preview_key(organisation: str, session_id: str) -> str:
    return f"footplate:open:{{{shard_of(session_id):02}}}:{organisation}:{session_id}"


def terminal_output_key(organisation: str, session_id: str) -> str:
    return f"footplate:terminal:{{{shard_of(session_id):02}}}:{organisation}:{session_id}:output"


def terminal_input_key(organisation: str, session_id: str) -> str:
    return f"footplate:terminal:{{{shard_of(session_id):02}}}:{organisation}:{session_id}:input"
