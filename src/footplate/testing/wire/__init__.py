"""The wire formats of model providers: how requests are read, and replies and errors are encoded.

Formats do not handle timing or script selection: `server.reply_playback` plays the steps of a script through a format's
encoder.
"""

from collections.abc import Mapping
from typing import Final

from footplate.testing.wire import anthropic_messages, openai_chat, openai_responses
from footplate.testing.wire.wire_format import WireFormat

FORMATS: Final[Mapping[str, WireFormat]] = {
    "/v1/messages": anthropic_messages.FORMAT,
    "/v1/chat/completions": openai_chat.FORMAT,
    "/v1/responses": openai_responses.FORMAT,
}
"""Wire formats by the path of the `POST` request."""
