"""A turn costs no more statements, Redis commands, history events and processes than the committed table allows.

The table is bench/support/counts/table.toml; every scenario in it is counted again and has to agree. Beside it, a text
turn in an open session stays below the limits, and updates of rows are made in place. At full size five changes that
each add processes, statements or commands are made, and each of them has to be noticed.
"""

from typing import Final

from bench.ci.mutations import load_mutations, missed_mutations
from bench.prove.figure import Figure
from bench.support.counts.counters import Repetitions
from bench.support.counts.scenarios import measure
from bench.support.counts.table import differences, load_table

_LIMITS: Final = {"sql": 12, "redis": 10, "history": 12}
_NAMES: Final = {"sql": "SQL statements", "redis": "Redis commands", "history": "history events"}
_TEXT: Final = "native: text"
_IN_PLACE: Final = 0.9
_CLAIM: Final = "fast-6"
_CHANGES: Final = 5


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    table = load_table()

    def repetitions(scenario: str) -> Repetitions:
        """A sample stops as soon as the counts agree with the table: more repetitions could only lower them."""
        least, most = (2, 10) if quick else (20, 20)
        return Repetitions(least, most, lambda counts: not differences(table, {scenario: counts}))

    measured = await measure(repetitions, all_scenarios=not quick)
    found = differences(table, measured.counts)
    text = {kind: sum(measured.counts[_TEXT][kind].values()) for kind in _LIMITS}
    in_place = measured.updates.in_place / measured.updates.all
    changes = [] if quick else [each for each in load_mutations() if each.caught_by == _CLAIM]
    missed = await missed_mutations(changes) if changes else []
    for difference in found:
        print(f"  {difference}", flush=True)
    costs = ", ".join(f"{count} {_NAMES[kind]} (at most {_LIMITS[kind]})" for kind, count in text.items())
    return Figure(
        text=f"{len(measured.counts)} scenarios, {len(found)} differences to the table; a text turn takes {costs}; "
        f"{in_place:.0%} of the updates of rows are made in place (at least {_IN_PLACE:.0%}); "
        f"{len(changes) - len(missed)} of {len(changes)} costly changes noticed",
        holds=not found
        and not missed
        and all(text[kind] <= limit for kind, limit in _LIMITS.items())
        and in_place >= _IN_PLACE
        and (quick or len(changes) >= _CHANGES),
        details={"differences": [*found], "missed": [*missed], "text_turn": {**text}},
    )
