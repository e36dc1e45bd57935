"""The wire formats of model providers: how each asks for a reply, streams it and reports an error.

A format knows nothing of timing or selection: `encoding` plays a script's steps through its encoder.
"""

from collections.abc import Mapping
from typing import Final

from footplate.testing.wire import chat, messages, responses
from footplate.testing.wire.format import Format

FORMATS: Final[Mapping[str, Format]] = {
    "/v1/messages": messages.FORMAT,
    "/v1/chat/completions": chat.FORMAT,
    "/v1/responses": responses.FORMAT,
}
"""By the path of the `POST` that asks for a reply."""
