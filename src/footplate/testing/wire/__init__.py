"""The wire formats of model providers, for the scripted model server. A format parses requests and encodes replies.

Formats know nothing about timing and script selection. `server.reply_playback` calls the encoder of a format for
each step of a script.
"""

import re
from typing import Final

from footplate.testing.wire import (
    anthropic_messages,
    bedrock_converse,
    gemini_generate,
    mistral_chat,
    openai_chat,
    openai_responses,
)
from footplate.testing.wire.wire_format_interface import WireFormat

_FORMATS: Final = (
    (re.compile("/v1/messages"), anthropic_messages.FORMAT),
    (re.compile("/v1/chat/completions"), openai_chat.FORMAT),
    (re.compile("/v1/responses"), openai_responses.FORMAT),
    (re.compile("/mistral/v1/chat/completions"), mistral_chat.FORMAT),
    (re.compile("/v1(beta)?/models/[^/]+:(streamG|g)enerateContent"), gemini_generate.FORMAT),
    (re.compile("/model/.+/converse(-stream)?"), bedrock_converse.FORMAT),
)


def find_format(path: str) -> WireFormat | None:
    """Returns the wire format of a `POST` request, by its path. Mistral's path is OpenAI's, so it has a prefix."""
    return next((wire for pattern, wire in _FORMATS if pattern.fullmatch(path)), None)
