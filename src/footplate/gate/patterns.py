"""Text with `*` in it, as rules for commands, parameters and tool names have it. Matched without backtracking."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextPattern:
    """`*` stands for any text. A trailing ` *`, if it is the only one, also matches what stands before it alone."""

    pieces: tuple[str, ...]
    """What stands between the stars, one more than there are stars."""

    @classmethod
    def of(cls, text: str) -> "TextPattern":
        return cls(tuple(text.split("*")))

    @property
    def exact(self) -> bool:
        return len(self.pieces) == 1

    @property
    def head(self) -> str:
        """What is said literally before the first star."""
        return self.pieces[0]

    def matches(self, text: str) -> bool:
        first = self.pieces[0]
        if self.exact:
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
