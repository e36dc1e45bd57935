"""The wire formats of model providers: how requests are read, and replies and errors are encoded.

Formats do not handle timing or script selection: `encoding` plays the steps of a script through a format's encoder.
"""

from collections.abc import Mapping
from typing import Final

from footplate.testing.wire import chat, messages, responses
from footplate.testing.wire.format import WireFormat

FORMATS: Final[Mapping[str, WireFormat]] = {
    "/v1/messages": messages.FORMAT,
    "/v1/chat/completions": chat.FORMAT,
    "/v1/responses": responses.FORMAT,
}
"""Wire formats by the path of the `POST` request."""
