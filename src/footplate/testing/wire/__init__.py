"""The wire formats of model providers, for the scripted model server. A format parses requests and encodes replies.

Formats know nothing about timing and script selection. `server.reply_playback` calls the encoder of a format for
each step of a script.
"""

from collections.abc import Mapping
from typing import Final

from footplate.testing.wire import anthropic_messages, openai_chat, openai_responses
from footplate.testing.wire.wire_format_interface import WireFormat

FORMATS: Final[Mapping[str, WireFormat]] = {
    "/v1/messages": anthropic_messages.FORMAT,
    "/v1/chat/completions": openai_chat.FORMAT,
    "/v1/responses": openai_responses.FORMAT,
}
"""Wire formats by the path of the `POST` request."""
