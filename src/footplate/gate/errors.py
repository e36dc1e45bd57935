"""The error for a permission rule or hook that cannot be parsed, with the position of the problem."""

from footplate.domain.errors import InvalidRequest


class InvalidRule(InvalidRequest):
    def __init__(self, text: str, position: int, problem: str, *, help_text: str = "", where: str = "") -> None:
        """`position` is the wrong character, counted from 1. `where` is the field that contains the rule."""
        prefix = f"{where}: " if where else ""
        super().__init__(
            f"{prefix}The rule {text!r} is invalid: at character {position}, {problem}.",
            field=where or None,
            help_text=help_text or "See docs/policy.md for the rule syntax.",
        )
        self.text = text
        self.position = position
        self.problem = problem
