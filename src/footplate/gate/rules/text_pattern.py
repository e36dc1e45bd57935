"""Matches text against patterns with `*`, as used in rules for commands, parameters and tool names, without
backtracking.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextPattern:
    """A pattern in which `*` matches any text. If the only `*` is a trailing ` *`, the text before it matches alone as
    well.
    """

    pieces: tuple[str, ...]
    """The literal texts between the `*`: always one more than there are `*`."""

    @classmethod
    def parse(cls, text: str) -> "TextPattern":
        return cls(tuple(text.split("*")))

    @property
    def is_exact(self) -> bool:
        return len(self.pieces) == 1

    @property
    def literal_prefix(self) -> str:
        """The literal text before the first `*`."""
        return self.pieces[0]

    def matches(self, text: str) -> bool:
        first = self.pieces[0]
        if self.is_exact:
            return text == first
        last = self.pieces[-1]
        if not last and len(self.pieces) == 2:  # noqa: PLR2004 - one star, at the end
            return text.startswith(first) or (first.endswith(" ") and text == first[:-1])
        if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
            return False
        at, end = len(first), len(text) - len(last)
        for piece in self.pieces[1:-1]:
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True
