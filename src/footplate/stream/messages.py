"""The frames of a stream as WebSocket messages, as pure functions: one JSON object each, with the frame's three fields.

`{"event": "agent.message", "id": "12", "data": {…}}`. Frames are encoded once, for server-sent events, and shared by
all who listen; here they are put into other words without being read, so that the two can never differ.
"""

from collections.abc import Iterator
from typing import Final

_EVENT: Final = b"event: "
_ID: Final = b"id: "
_DATA: Final = b"data: "


def messages(chunk: bytes) -> Iterator[tuple[str, str]]:
    """The event and the message of each frame. `chunk` holds whole frames of ours; a keep-alive is none."""
    for frame in chunk.split(b"\n\n"):
        event = place = data = b""
        for line in frame.split(b"\n"):
            if line.startswith(_DATA):
                data = line[len(_DATA) :]
            elif line.startswith(_ID):
                place = b'"id":"%b",' % line[len(_ID) :]
            elif line.startswith(_EVENT):
                event = line[len(_EVENT) :]
        if event:
            yield event.decode(), (b'{"event":"%b",%b"data":%b}' % (event, place, data)).decode()
