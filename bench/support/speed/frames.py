"""What is broadcast: text in pieces that a listener can count in the bytes of a stream without parsing them."""

from typing import Final

PIECE: Final = "abcdefg "
"""One delta of the model. Pieces may be joined, never cut."""
EVENT: Final = b"event: event_delta\n"
