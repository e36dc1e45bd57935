"""The broadcast text: pieces that a listener can count in the bytes of a stream without parsing it."""

from typing import Final

PIECE: Final = "abcdefg "
"""One delta of the model. Pieces may be joined, but are never cut."""
EVENT: Final = b"event: event_delta\n"
