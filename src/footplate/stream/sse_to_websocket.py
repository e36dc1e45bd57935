"""Converts server-sent events to WebSocket messages, without parsing their data. The functions do no I/O.

A message is a JSON object such as `{"event": "agent.message", "id": "12", "data": {…}}`. Events are encoded once, as
server-sent events, and shared by all clients. The data of the two formats can therefore never differ.
"""

from collections.abc import Iterator
from typing import Final

_EVENT: Final = b"event: "
_ID: Final = b"id: "
_DATA: Final = b"data: "


def to_websocket_messages(chunk: bytes) -> Iterator[tuple[str, str]]:
    """Yields the event and the message of each frame. `chunk` contains complete frames. Keep-alives are skipped."""
    for frame in chunk.split(b"\n\n"):
        event = id_field = data = b""
        for line in frame.split(b"\n"):
            if line.startswith(_DATA):
                data = line[len(_DATA) :]
            elif line.startswith(_ID):
                id_field = b'"id":"%b",' % line[len(_ID) :]
            elif line.startswith(_EVENT):
                event = line[len(_EVENT) :]
        if event:
            yield event.decode(), (b'{"event":"%b",%b"data":%b}' % (event, id_field, data)).decode()
