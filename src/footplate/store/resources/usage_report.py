"""Reads usage reports (turns, tokens, cost and tool calls) from the database.

Ended turns are totalled by day, by hour, and by tool and day, in the transaction that ends them. A report adds whole
days, whole hours, the turns of the remaining minutes, and the turns that are still open. Every query filters by
organisation, so a report never includes the usage of another organisation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from footplate.domain.json import Json
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import ViewFilter
from footplate.domain.ports.usage_report import Grouping, ToolCalls, UsageQuery, UsageRow
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.turns import TurnStatus
from footplate.store.database import Database
from footplate.store.row_mapping import Row

_MEMBER: Final[Grouping] = "member"
_DAY: Final = timedelta(days=1)
_HOUR: Final = timedelta(hours=1)
_GROUPS: Final[dict[str, str]] = {
    "session": "session_id",
    "day": "day::text",
    "hour": """to_char(hour at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')""",
    **{name: f"nullif({name}, '')" for name in ("agent", "model", "harness", "key", "project")},
    "parameters": "parameters",
    "status": "status",
    "tool": "tool",
}
"""The text of each grouping, in the order of the lines."""
_COLUMNS: Final[dict[str, str]] = {"session": "session_id", "member": "key"}
_SUMS: Final = ("microseconds", "input_tokens", "output_tokens", "cache_read", "cache_write", "requests")
_COST: Final = ("cost_microusd", "priced_turns", "unpriced_turns")
_CALLS: Final = ("calls", "failed_calls", "call_microseconds")
_VISIBLE: Final = (
    "exists (select from sessions s where s.id = u.session_id"
    " and ({0}::text[] is null or coalesce(s.owner, s.principal) = any({0}) or s.visible_to = any({0}))"
    " and ({1}::text[] is null or s.project_ids <> '{{}}' and s.project_ids <@ {1}))"
)
_DAYS: Final = "usage_by_day u"
_DAYS_BY_TOOL: Final = "tool_usage_by_day u"
_HOURS: Final = "(select *, (hour at time zone 'utc')::date as day from usage_by_hour) u"
_OPEN_TURNS: Final = (
    "open_turns o cross join lateral"
    " (select * from turn_usage t where t.session_id = o.session_id and t.id = o.turn_id limit 1) u"
)
"""Each by its primary key: a plan without statistics would otherwise read all turns of the organisation."""

Period = tuple[datetime, datetime]


class UsageReader:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def query_usage(self, principal: Principal, query: UsageQuery) -> Sequence[UsageRow]:
        view = await self._load_view(principal)
        built = build_usage_query(principal.organisation, query, view, datetime.now(UTC))
        if built is None:
            return []
        sql, arguments = built
        async with self._database.transaction() as connection:
            await connection.execute("set local work_mem = '64MB'")  # enough to total a month without a sort on disk
            rows = await connection.fetch(sql, *arguments)
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


@dataclass(frozen=True, slots=True)
class SplitPeriod:
    """A period, divided into whole UTC days, the whole hours beside them, and what remains."""

    days: Period
    hours: tuple[Period, Period]
    turns: tuple[Period, Period]


def split_period(start: datetime, end: datetime, now: datetime, *, by_hour: bool) -> SplitPeriod:
    """The last day counts as a whole day, and the last hour as a whole hour, if the period ends in the future. With
    `by_hour`, it has no whole days.
    """
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    first_hour, end_hour = _whole_units(start, end, now, _HOUR)
    first_day, end_day = (end_hour, end_hour) if by_hour else _whole_units(start, end, now, _DAY)
    if first_day == end_day:
        hours = (first_hour, end_hour), (end_hour, end_hour)
        first_day = end_day = end_hour
    else:
        hours = (first_hour, first_day), (end_day, max(end_day, end_hour))
    return SplitPeriod((first_day, end_day), hours, ((start, min(first_hour, end)), (max(end_hour, start), end)))


def _whole_units(start: datetime, end: datetime, now: datetime, unit: timedelta) -> Period:
    first = _round_up(start, unit)
    last = _round_up(end, unit) if end >= now else _round_down(end, unit)
    return (first, last) if first < last else (first, first)


def _round_down(moment: datetime, unit: timedelta) -> datetime:
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return moment - (moment - midnight) % unit


def _round_up(moment: datetime, unit: timedelta) -> datetime:
    lower = _round_down(moment, unit)
    if lower == moment:
        return moment
    return lower + unit if lower < datetime.max.replace(tzinfo=UTC) - unit else moment


def build_usage_query(
    organisation: str, query: UsageQuery, view: ViewFilter, now: datetime
) -> tuple[str, Sequence[Any]] | None:
    """Builds the SQL of a report, or returns None if the period is empty. Values are always arguments, never part of
    the text.
    """
    arguments: list[Any] = [organisation]

    def bind(value: Any) -> str:
        arguments.append(value)
        return f"${len(arguments)}"

    by_tool = "tool" in query.group_by
    by_session = "session" in query.group_by or "session" in query.filters
    groups = [name for name in _GROUPS if name in {"key" if name == _MEMBER else name for name in query.group_by}]
    conditions = [f"{_COLUMNS.get(name, name)} = any({bind(list(values))})" for name, values in query.filters.items()]
    if query.parameters:
        conditions.append(f"parameters::jsonb @> {bind(orjson.dumps(query.parameters).decode())}::text::jsonb")
    measures = ("turns", *_SUMS, *_COST, *(_CALLS if by_tool else ()))
    columns = ", ".join(dict.fromkeys([*(_COLUMNS.get(name, name) for name in groups), "status"]))
    # Totalled within each source, where the planner knows the number of groups. In a group by session, rows are read in
    # the order of an index instead, until there are as many sessions as the limit allows.
    is_totalled = "session" not in query.group_by
    values = ", ".join(f"sum({name}) as {name}" if is_totalled else name for name in measures)

    def select(source: str, column: str, *periods: Period, also: Sequence[str] = ()) -> None:
        filled = [period for period in periods if period[0] < period[1]]
        if filled:
            bounds = [[moment.date() if column == "day" else moment for moment in period] for period in filled]
            times = [f"{column} >= {bind(begin)} and {column} < {bind(end)}" for begin, end in bounds]
            where = " and ".join([f"u.organisation = $1 and ({' or '.join(times)})", *conditions, *also])
            grouped = f"group by {columns}" if is_totalled else ""
            sources.append(f"select {columns}, {values} from {source} where {where} {grouped}")  # noqa: S608 - our names

    sources: list[str] = []
    whole = query.start, query.end
    turns = "turn_tool_usage u" if by_tool else "turn_usage u"
    if by_session or not view.is_unrestricted:
        visible = () if view.is_unrestricted else (_VISIBLE.format(bind(view.audiences), bind(view.project_ids)),)
        select(turns, "created_at", whole, also=visible)
    else:
        split = split_period(query.start, query.end, now, by_hour="hour" in query.group_by)
        select(_DAYS_BY_TOOL if by_tool else _DAYS, "day", split.days)
        if by_tool:  # tools have no totals by hour
            edges = _join(split.turns[0], split.hours[0]), _join(split.hours[1], split.turns[1])
            select(turns, "created_at", *edges, also=("ended_at is not null",))
        else:
            select(_HOURS, "hour", *split.hours)
            select(turns, "created_at", *split.turns, also=("ended_at is not null",))
            select(_OPEN_TURNS, "created_at", whole, also=("o.organisation = $1", "ended_at is null"))
    if not sources:
        return None
    keys = [str(number) for number in range(1, len(groups) + 1)]
    totals = [
        *(f"sum({name})::bigint as {name}" for name in measures),
        *(f"coalesce(sum(turns) filter (where status = '{s.value}'), 0)::bigint as {s.value}" for s in TurnStatus),
    ]
    grouped, ordered = (f"{clause} by {', '.join(keys)}" if keys else "" for clause in ("group", "order"))
    texts = [f"{_GROUPS[name]} as {name}" for name in groups]
    sql = f"select {', '.join([*texts, *totals])} from ({' union all '.join(sources)}) used"  # noqa: S608
    having = f"having sum(turns) > 0 and sum(requests) >= {query.min_requests:d}"
    return f"{sql} {grouped} {having} {ordered} limit {query.limit:d}", arguments


def _join(first: Period, second: Period) -> Period:
    """Joins two adjacent periods, of which one may be empty."""
    periods = [period for period in (first, second) if period[0] < period[1]] or [first]
    return periods[0][0], periods[-1][1]


def _usage_row(row: Row, query: UsageQuery, names: Mapping[str | None, str]) -> UsageRow:
    group: dict[str, Json] = {
        name: row["key" if name == _MEMBER else name] for name in (*_GROUPS, _MEMBER) if name in query.group_by
    }
    if "parameters" in group:
        group["parameters"] = orjson.loads(row["parameters"])
    if _MEMBER in query.group_by:
        group["member_name"] = names.get(row["key"])
    return UsageRow(
        group=group,
        turns=row["turns"],
        statuses={status.value: row[status.value] for status in TurnStatus if row[status.value]},
        seconds=row["microseconds"] / 1e6,
        usage=Usage(
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            cache_read_tokens=row["cache_read"],
            cache_write_tokens=row["cache_write"],
            requests=row["requests"],
            cost_microusd=row["cost_microusd"] if row["priced_turns"] else None,
        ),
        unpriced_turns=row["unpriced_turns"],
        tool_calls=ToolCalls(calls=row["calls"], failed=row["failed_calls"], seconds=row["call_microseconds"] / 1e6)
        if "tool" in query.group_by
        else None,
    )
