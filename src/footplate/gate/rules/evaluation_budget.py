"""Limits the computation for one permission decision. Without a limit, a user could make a decision very slow, because
its cost is the number of rules times the size of the command.
"""

from typing import Final

MAX_STEPS: Final = 5_000_000
"""Steps for one call. A step takes about 10 ns."""
PER_SEARCH: Final = 250
"""Steps for one search with a regular expression, in addition to the steps for each character."""
PER_COMPARISON: Final = 200
"""Steps to compare one command rule with one command."""
PER_CELL: Final = 10
"""Steps to compare one character of a glob with one character of another."""
_CHARACTERS_PER_STEP: Final = 10


class BudgetExceeded(Exception):
    """Evaluating the rules for this call would take too long."""


class EvaluationBudget:
    def __init__(self, steps: int = MAX_STEPS) -> None:
        self._remaining = steps

    def spend(self, steps: int) -> None:
        """Take steps from the budget. Raises `BudgetExceeded` when it is used up."""
        self._remaining -= steps
        if self._remaining < 0:
            raise BudgetExceeded

    def spend_on_comparison(self, rules: int, text: str) -> None:
        """Spend the steps for comparing a number of rules with a text."""
        self.spend(rules * (PER_COMPARISON + len(text) // _CHARACTERS_PER_STEP))
