"""The wire formats of model providers, for the scripted model server. A format parses requests and encodes replies.

Formats know nothing about timing and script selection. `server.reply_playback` calls the encoder of a format for
each step of a script.
"""

import re
from typing import Final

from footplate.testing.wire.anthropic_messages import FORMAT as ANTHROPIC_MESSAGES
from footplate.testing.wire.bedrock_converse import FORMAT as BEDROCK_CONVERSE
from footplate.testing.wire.gemini_generate import FORMAT as GEMINI_GENERATE
from footplate.testing.wire.mistral_chat import FORMAT as MISTRAL_CHAT
from footplate.testing.wire.openai_chat import FORMAT as OPENAI_CHAT
from footplate.testing.wire.openai_responses import FORMAT as OPENAI_RESPONSES
from footplate.testing.wire.wire_format_interface import WireFormat

_FORMATS: Final = (
    (re.compile("/v1/messages"), ANTHROPIC_MESSAGES),
    (re.compile("/v1/chat/completions"), OPENAI_CHAT),
    (re.compile("/v1/responses"), OPENAI_RESPONSES),
    (re.compile("/mistral/v1/chat/completions"), MISTRAL_CHAT),
    (re.compile("/v1(beta)?/models/[^/]+:(streamG|g)enerateContent"), GEMINI_GENERATE),
    (re.compile("/model/.+/converse(-stream)?"), BEDROCK_CONVERSE),
)


def find_format(path: str) -> WireFormat | None:
    """Returns the wire format of a `POST` request, by its path. Mistral's path is OpenAI's, so it has a prefix."""
    return next((wire for pattern, wire in _FORMATS if pattern.fullmatch(path)), None)
