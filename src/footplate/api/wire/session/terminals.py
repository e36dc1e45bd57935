"""Wire models of a session's terminal: the query of its WebSocket, and the messages in both directions."""

from typing import Annotated, Final, Literal

import orjson
from pydantic import Field, ValidationError

from footplate.api.wire.request_base import Body, Parameters, timestamp
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.ports.terminals import (
    MAX_COLUMNS,
    MAX_ROWS,
    TerminalFrame,
    TerminalInput,
    TerminalRecording,
    TerminalSize,
)

MAX_KEY_BYTES: Final = 32 * 1024
"""Bytes of a message with keys."""


class AttachTerminal(Parameters):
    write: Annotated[bool, Field(strict=False, description="Also type. This needs the permission `operate`.")] = False


class ResizeTerminal(Body):
    type: Literal["resize"]
    columns: Annotated[int, Field(ge=1, le=MAX_COLUMNS)]
    rows: Annotated[int, Field(ge=1, le=MAX_ROWS)]


def parse_message(keys: bytes | None, text: str | None) -> TerminalInput:
    """Parse a message of the client: keys as bytes, or a JSON object. Raises `InvalidRequest`."""
    if keys is not None:
        if len(keys) > MAX_KEY_BYTES:
            raise InvalidRequest(f"A message has at most {MAX_KEY_BYTES} bytes of keys.", field="message")
        return TerminalInput(keys)
    try:
        sent = ResizeTerminal.model_validate_json(text or "")
    except ValidationError as error:
        raise InvalidRequest(
            "A text message to a terminal must be a resize.",
            field="message",
            help_text='Send keys as bytes, and {"type": "resize", "columns": 80, "rows": 24} as text.',
        ) from error
    return TerminalInput(size=TerminalSize(sent.columns, sent.rows))


def serialize_frame(frame: TerminalFrame) -> str:
    """Return the message for everything but output, which is sent as bytes."""
    message: JsonObject = {"type": frame.kind, "terminal_id": frame.terminal_id}
    if frame.size is not None:
        message |= {"columns": frame.size.columns, "rows": frame.size.rows}
    if frame.kind == "closed":
        message["reason"] = frame.data.decode("utf-8", "replace")
    return orjson.dumps(message).decode()


def serialize_recording(recording: TerminalRecording) -> JsonObject:
    return {
        "id": recording.id,
        "type": "terminal_recording",
        "session_id": recording.session_id,
        "size_bytes": recording.size_bytes,
        "created_at": timestamp(recording.created_at),
    }
