"""Runs user-supplied regular expressions on RE2, in time linear in the length of the text.

Python's own engine backtracks: a short pattern can block the interpreter for minutes. Patterns that RE2 does not
support (backreferences, lookaround, very large repetition counts) are rejected.
"""

from dataclasses import dataclass, field
from typing import Final

import re2

MAX_CHARACTERS: Final = 1000
"""Limit on the length of a user-supplied pattern."""
_MAX_BYTES: Final = 256 * 1024
"""RE2's memory limit for one pattern. It bounds the compiled program, and thereby the steps per character."""


class UnsupportedPattern(ValueError):
    """The pattern is not supported. The message says why."""


@dataclass(frozen=True, slots=True)
class LinearRegex:
    """A compiled pattern. A dot also matches a line break."""

    pattern: str
    max_bytes: int = _MAX_BYTES
    _compiled: "re2._Regexp" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        options = re2.Options()
        options.max_mem = self.max_bytes
        options.dot_nl = True
        options.never_capture = True
        options.log_errors = False
        try:
            compiled = re2.compile(self.pattern.encode(), options)
        except UnicodeEncodeError:
            raise UnsupportedPattern("it contains a lone surrogate") from None
        except re2.error as error:
            raise UnsupportedPattern(_reason(error)) from None
        object.__setattr__(self, "_compiled", compiled)

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self._compiled.search(_encode(text)) is not None

    def fullmatch(self, text: str) -> bool:
        return self._compiled.fullmatch(_encode(text)) is not None


def _encode(text: str) -> bytes:
    """Encode a text. Bytes of file names that are not valid text become question marks, which a star matches."""
    return text.encode(errors="replace")


def _reason(error: re2.error) -> str:
    message = error.args[0] if error.args else b""
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)
