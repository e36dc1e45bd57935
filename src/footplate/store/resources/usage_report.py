"""Reads usage reports (tokens, cost and turns) from the database.

Every query filters by organisation, so a report never includes the usage of another organisation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, get_args

from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import ViewFilter
from footplate.domain.ports.usage_report import Grouping, UsageQuery, UsageRow
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.turns import TurnStatus
from footplate.store.database import Database
from footplate.store.row_mapping import Row

_SESSION: Final[Grouping] = "session"
_MEMBER: Final[Grouping] = "member"
_COLUMNS: Final[dict[Grouping, str]] = {grouping: grouping for grouping in get_args(Grouping)} | {_MEMBER: "key"}
_DAILY_COLUMNS: Final = ("day", "agent", "model", "harness", "key")


class UsageReader:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def query_usage(self, principal: Principal, query: UsageQuery) -> Sequence[UsageRow]:
        grouped = {_COLUMNS[grouping] for grouping in query.group_by}
        flags = [column in grouped for column in _DAILY_COLUMNS]
        view = await self._load_view(principal)
        if _SESSION in query.group_by:
            rows = await self._database.fetch(
                "usage_by_session",
                principal.organisation,
                query.start,
                query.end,
                *flags,
                query.limit,
                view.audiences,
                view.project_ids,
            )
        else:
            first_day, end_day = _whole_days(query.start, query.end, datetime.now(UTC))
            if not view.is_unrestricted:
                first_day = end_day
            rows = await self._database.fetch(
                "usage",
                principal.organisation,
                query.start,
                min(_midnight(first_day), query.end),
                *flags,
                first_day,
                end_day,
                _midnight(end_day),
                query.end,
                query.limit,
                view.audiences,
                view.project_ids,
            )
        names: dict[str | None, str] = {}
        if _MEMBER in query.group_by:
            members = await self._database.fetch("member_names", [row["key"] for row in rows], principal.organisation)
            names = {row["id"]: row["name"] for row in members}
        return [_usage_row(row, query, names) for row in rows]

    async def _load_view(self, principal: Principal) -> ViewFilter:
        """Returns what the principal can see. A member who can see all sessions is not restricted, which is faster."""
        view = ViewFilter.of(principal)
        if view.audiences is None:
            return view
        row = await self._database.fetchrow("hides_sessions", principal.organisation, view.audiences)
        return view if row is None or row["hides"] else replace(view, audiences=None)


def _whole_days(start: datetime, end: datetime, now: datetime) -> tuple[date, date]:
    """Returns the whole UTC days in the range: the first day, and the day after the last. Today counts as a whole day
    if the range ends in the future.
    """
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    first_day = start.date() if start.time() == time() else _next_day(start.date())
    end_day = _next_day(end.date()) if end >= now else end.date()
    return first_day, max(first_day, end_day)


def _next_day(day: date) -> date:
    return day if day == date.max else day + timedelta(days=1)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _usage_row(row: Row, query: UsageQuery, names: Mapping[str | None, str]) -> UsageRow:
    group: dict[str, str | None] = {
        grouping: row[column] for grouping, column in _COLUMNS.items() if grouping in query.group_by
    }
    if _MEMBER in query.group_by:
        group["member_name"] = names.get(row["key"])
    return UsageRow(
        group=group,
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
