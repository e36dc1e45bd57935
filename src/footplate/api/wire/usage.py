"""Wire models of usage reports: the query parameters and the response."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final, Literal, get_args

import orjson
from pydantic import Field

from footplate.api.wire.request_base import MAX_INTEGER, Parameters, Text, UtcTime, timestamp
from footplate.api.wire.response_models import ResponseModel, ToolCallTotals, UsageAnswer
from footplate.api.wire.session.sessions import serialize_token_usage, serialize_tool_calls
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject, clean
from footplate.domain.ports.usage_report import Filter, Grouping, UsageQuery, UsageRow
from footplate.domain.sessions.turns import TurnStatus

MAX_LINES: Final = 1000
_MAX_VALUES: Final = 100
_DEFAULT_PERIOD: Final = timedelta(days=30)
_MAX_PERIOD: Final = timedelta(days=366)
_MAX_PERIOD_BY_HOUR: Final = timedelta(days=3)


Values = Annotated[list[Text], Field(max_length=_MAX_VALUES)]


class UsageParameters(Parameters):
    """Selects turns by their start time. The default is the last 30 days including today; the maximum is 366 days.
    A group by `hour` covers the last 24 hours by default, and 3 days at most.
    """

    group_by: Annotated[list[Grouping], Field(alias="group_by[]", default_factory=list)]
    session: Annotated[Values, Field(alias="session[]", default_factory=list)]
    agent: Annotated[Values, Field(alias="agent[]", default_factory=list)]
    model: Annotated[Values, Field(alias="model[]", default_factory=list)]
    harness: Annotated[Values, Field(alias="harness[]", default_factory=list)]
    member: Annotated[Values, Field(alias="member[]", default_factory=list)]
    project: Annotated[Values, Field(alias="project[]", default_factory=list)]
    status: Annotated[list[TurnStatus], Field(alias="status[]", default_factory=list, max_length=_MAX_VALUES)]
    tool: Annotated[Values, Field(alias="tool[]", default_factory=list, description="Only with `group_by=tool`.")]
    parameter: Annotated[
        Values,
        Field(alias="parameter[]", default_factory=list, description="`NAME=VALUE`: a parameter with this value."),
    ]
    min_iterations: Annotated[
        int, Field(ge=0, le=MAX_INTEGER, description="Only lines with at least so many requests to models.")
    ] = 0
    start: Annotated[UtcTime | None, Field(alias="from")] = None
    end: Annotated[UtcTime | None, Field(alias="to")] = None
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = MAX_LINES

    def to_query(self) -> UsageQuery:
        """Builds a query for one line more than the limit, to detect whether there are more."""
        by_hour = "hour" in self.group_by
        self._check_tool()
        now = datetime.now(UTC)
        tomorrow = _midnight(now + timedelta(days=1))
        end = self.end or max(tomorrow, self.start or tomorrow)
        start = self.start or (_hours_before(min(now, end)) if by_hour else _default_start(end))
        if start > end:
            raise InvalidRequest("from: must not be later than `to`", field="from", help_text="Swap the two values.")
        max_period = _MAX_PERIOD_BY_HOUR if by_hour else _MAX_PERIOD
        if min(end, max(now, start)) - start > max_period:
            raise InvalidRequest(
                f"from: must be at most {max_period.days} days before `to`{' in a group by `hour`' if by_hour else ''}",
                field="from",
                help_text="Split the period into several requests.",
            )
        filters = {name: values for name in get_args(Filter) if (values := getattr(self, name))}
        return UsageQuery(
            start=start,
            end=end,
            group_by=frozenset(self.group_by),
            limit=self.limit + 1,
            filters=filters,
            parameters=dict(map(_parse_parameter, self.parameter)),
            min_requests=self.min_iterations,
        )

    def _check_tool(self) -> None:
        if self.tool and "tool" not in self.group_by:
            raise InvalidRequest(
                "tool: needs `group_by=tool`, because a turn can call several tools",
                field="tool[]",
                help_text="Add `group_by=tool`.",
            )
        if {"tool", "hour"} <= set(self.group_by):
            raise InvalidRequest(
                "group_by: `tool` and `hour` cannot be combined, because calls are totalled by day",
                field="group_by[]",
                help_text="Use `day` instead of `hour`.",
            )


def _parse_parameter(text: str) -> tuple[str, Json]:
    """Reads `NAME=VALUE`. The value is JSON, or a text if it is not valid JSON."""
    name, separator, value = text.partition("=")
    if not separator:
        raise InvalidRequest(
            "parameter: must be NAME=VALUE", field="parameter[]", help_text="Example: parameter=max_iterations=50."
        )
    try:
        return name, clean(orjson.loads(value))
    except orjson.JSONDecodeError:
        return name, value


def _hours_before(end: datetime) -> datetime:
    """Returns the start of the first of the 24 hours up to this time."""
    try:
        return (end - timedelta(hours=23)).replace(minute=0, second=0, microsecond=0)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _default_start(end: datetime) -> datetime:
    try:
        return _midnight(end - _DEFAULT_PERIOD)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _midnight(time_: datetime) -> datetime:
    """Returns the start of the day: usage of whole days is read faster."""
    return datetime.combine(time_.astimezone(UTC), time(), UTC)


class UsageLineAnswer(ResponseModel):
    """Dimensions that the query does not group by are omitted."""

    type: Literal["usage"]
    day: date | None = None
    hour: datetime | None = None
    agent: str | None = None
    model: str | None = None
    session: str | None = None
    harness: str | None = None
    key: str | None = None
    member: str | None = None
    member_name: str | None = None
    project: str | None = None
    parameters: dict[str, Any] | None = None
    status: str | None = None
    tool: str | None = None
    turns: int
    statuses: dict[str, int]
    success_rate: Annotated[float | None, Field(description="The share of ended turns with the status `completed`.")]
    iterations: Annotated[int, Field(description="Requests to models.")]
    seconds: float
    average_seconds: float | None
    usage: UsageAnswer
    unpriced_turns: int
    tool_calls: Annotated[ToolCallTotals | None, Field(description="Only in a group by `tool`.")] = None


class UsageListing(ResponseModel):
    data: list[UsageLineAnswer]
    start: Annotated[datetime, Field(alias="from")]
    end: Annotated[datetime, Field(alias="to")]
    has_more: bool


def serialize_usage_report(query: UsageQuery, lines: list[UsageRow], *, has_more: bool) -> JsonObject:
    data: list[Json] = [_serialize_line(line) for line in lines]
    return {
        "data": data,
        "from": timestamp(query.start),
        "to": timestamp(query.end),
        "has_more": has_more,
    }


def _serialize_line(line: UsageRow) -> JsonObject:
    calls = line.tool_calls
    return {
        "type": "usage",
        **line.group,
        "turns": line.turns,
        "statuses": {**line.statuses},
        "success_rate": _rounded(line.success_rate),
        "iterations": line.usage.requests,
        "seconds": round(line.seconds, 3),
        "average_seconds": _rounded(line.seconds / line.ended_turns if line.ended_turns else None),
        "usage": serialize_token_usage(line.usage),
        "unpriced_turns": line.unpriced_turns,
        **({} if calls is None else {"tool_calls": serialize_tool_calls(calls.calls, calls.failed, calls.seconds)}),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
