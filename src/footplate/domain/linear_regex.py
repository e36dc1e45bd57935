"""Runs regular expressions that users write on RE2, in time linear in the length of the text.

Python's own engine tries one way after the other, and a short pattern can make it try for minutes while it holds the
interpreter. What RE2 cannot express (backreferences, looking ahead or behind, very many repetitions) is refused when
the pattern is written.
"""

from dataclasses import dataclass, field
from typing import Final

import re2

MAX_CHARACTERS: Final = 1000
"""Of a pattern that a person writes."""
_MAX_BYTES: Final = 256 * 1024
"""What RE2 may need for one pattern: it bounds the compiled program, and so the steps for each character."""


class UnsupportedPattern(ValueError):
    """Says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class LinearRegex:
    """A dot also matches the end of a line."""

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
        """Whether it matches anywhere."""
        return self._compiled.search(_encode(text)) is not None

    def fullmatch(self, text: str) -> bool:
        return self._compiled.fullmatch(_encode(text)) is not None


def _encode(text: str) -> bytes:
    """File names may have bytes that are no text. In place of each stands a question mark, which a star matches."""
    return text.encode(errors="replace")


def _reason(error: re2.error) -> str:
    said = error.args[0] if error.args else b""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
