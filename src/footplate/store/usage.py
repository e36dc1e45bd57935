"""Reads what was used. The organisation is part of the query: nobody adds up what is another's."""

from collections.abc import Sequence
from typing import Final, get_args

from footplate.domain.events import Usage
from footplate.domain.principals import Principal
from footplate.domain.turns import TurnStatus
from footplate.domain.usage import Grouping, UsageLine, UsageQuestion
from footplate.store.database import Database
from footplate.store.records import Row

GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)


class UsageReader:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def usage(self, principal: Principal, question: UsageQuestion) -> Sequence[UsageLine]:
        rows = await self._database.fetch(
            "usage",
            principal.organisation,
            question.start,
            question.end,
            *(grouping in question.group_by for grouping in GROUPINGS),
            question.limit,
        )
        return [_line(row, question) for row in rows]


def _line(row: Row, question: UsageQuestion) -> UsageLine:
    return UsageLine(
        group={grouping: row[grouping] for grouping in GROUPINGS if grouping in question.group_by},
        turns=row["turns"],
        statuses={status.value: row[status.value] for status in TurnStatus if row[status.value]},
        seconds=row["seconds"],
        usage=Usage(
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            cache_read_tokens=row["cache_read"],
            cache_write_tokens=row["cache_write"],
            requests=row["requests"],
            cost_microusd=row["cost_microusd"],
        ),
        unpriced_turns=row["unpriced_turns"],
    )
