"""A turn costs no more statements, Redis commands, history events and processes than the committed table allows.

The table is bench/support/counts/table.toml. Every scenario in it is counted again and has to agree. In addition, a
text turn in an open session stays below fixed limits, and rows are updated in place. At full size five changes that
each add processes, statements or commands are made to the code, and the counts have to detect each of them.
"""

from typing import Final

from bench.ci.mutations import find_missed, load_mutations
from bench.prove.figure import Figure
from bench.support.counts.counters import Repetitions
from bench.support.counts.scenarios import measure
from bench.support.counts.table import differences, load_table

_LIMITS: Final = {"sql": 12, "redis": 10, "history": 12}
_NAMES: Final = {"sql": "SQL statements", "redis": "Redis commands", "history": "history events"}
_TEXT_SCENARIO: Final = "native: text"
_MIN_IN_PLACE: Final = 0.9
_CLAIM: Final = "fast-6"
_MIN_CHANGES: Final = 5


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    table = load_table()

    def repetitions(scenario: str) -> Repetitions:
        """A sample stops as soon as the counts agree with the table: more repetitions could only lower them. On a busy
        machine, many repetitions last longer than the intervals of periodic queries, and count those too.
        """
        min_repetitions, max_repetitions = (2, 40) if quick else (20, 20)
        return Repetitions(min_repetitions, max_repetitions, lambda counts: not differences(table, {scenario: counts}))

    measured = await measure(repetitions, all_scenarios=not quick)
    found = differences(table, measured.counts)
    text_turn = {kind: sum(measured.counts[_TEXT_SCENARIO][kind].values()) for kind in _LIMITS}
    in_place = measured.updates.in_place / measured.updates.all
    changes = [] if quick else [each for each in load_mutations() if each.caught_by == _CLAIM]
    missed = await find_missed(changes) if changes else []
    for difference in found:
        print(f"  {difference}", flush=True)
    costs = ", ".join(f"{count} {_NAMES[kind]} (at most {_LIMITS[kind]})" for kind, count in text_turn.items())
    headline = (
        f"{len(found)} differences; a text turn: {text_turn['sql']} statements, {text_turn['redis']} Redis commands, "
        f"{text_turn['history']} history events"
    )
    if missed:
        headline = f"{len(missed)} of {len(changes)} costly changes were not detected"
    elif in_place < _MIN_IN_PLACE:
        headline = f"only {in_place:.0%} of row updates are made in place (limit {_MIN_IN_PLACE:.0%})"
    return Figure(
        headline=headline,
        summary=f"{len(measured.counts)} scenarios, {len(found)} differences to the table; a text turn takes {costs}; "
        f"{in_place:.0%} of the row updates are made in place (at least {_MIN_IN_PLACE:.0%}); "
        f"{len(changes) - len(missed)} of {len(changes)} costly changes detected",
        holds=not found
        and not missed
        and all(text_turn[kind] <= limit for kind, limit in _LIMITS.items())
        and in_place >= _MIN_IN_PLACE
        and (quick or len(changes) >= _MIN_CHANGES),
        details={"differences": [*found], "missed": [*missed], "text_turn": {**text_turn}},
    )
