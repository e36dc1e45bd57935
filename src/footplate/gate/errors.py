"""A rule that cannot be read is refused where it is written, with the position of what is wrong."""

from footplate.domain.errors import InvalidRequest


class InvalidRule(InvalidRequest):
    def __init__(self, text: str, position: int, problem: str, *, help_text: str = "", where: str = "") -> None:
        """`position`: the character that is wrong, counted from 1. `where`: the list that the rule stands in."""
        place = f"{where}: " if where else ""
        super().__init__(
            f"{place}The rule {text!r} cannot be read: at character {position}, {problem}.",
            field=where or None,
            help_text=help_text or "docs/policy.md shows the rules that there are.",
        )
        self.text = text
        self.position = position
        self.problem = problem
