"""Limits the computation for one decision: rules and commands both come from users, and its cost is their product."""

from typing import Final

MAX_STEPS: Final = 5_000_000
"""For one call. A step takes about 10 ns."""
PER_SEARCH: Final = 250
"""Of one regular expression, beside what each character takes."""
PER_COMPARISON: Final = 200
"""Of one rule for commands with one command."""
PER_CELL: Final = 10
"""Of two globs: one character of each."""
_CHARACTERS_PER_STEP: Final = 10


class BudgetExceeded(Exception):
    """Evaluating the rules for this call would take too long."""


class EvaluationBudget:
    def __init__(self, steps: int = MAX_STEPS) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        """Raises `BudgetExceeded` when there is nothing left."""
        self._left -= steps
        if self._left < 0:
            raise BudgetExceeded

    def compare(self, rules: int, text: str) -> None:
        """Spend what it takes to compare so many rules with a text."""
        self.spend(rules * (PER_COMPARISON + len(text) // _CHARACTERS_PER_STEP))
