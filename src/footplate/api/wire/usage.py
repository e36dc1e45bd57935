"""Wire models of usage reports: the query parameters and the response."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from footplate.api.wire.request_base import Parameters, UtcTime, timestamp
from footplate.api.wire.response_models import ResponseModel, UsageAnswer
from footplate.api.wire.session.sessions import serialize_token_usage
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.usage_report import Grouping, UsageQuery, UsageRow

MAX_LINES: Final = 1000
_DEFAULT_PERIOD: Final = timedelta(days=30)
_MAX_PERIOD: Final = timedelta(days=366)


class UsageParameters(Parameters):
    """Selects turns by their start time. The default is the last 30 days including today; the maximum is 366 days."""

    group_by: Annotated[list[Grouping], Field(alias="group_by[]", default_factory=list)]
    start: Annotated[UtcTime | None, Field(alias="from")] = None
    end: Annotated[UtcTime | None, Field(alias="to")] = None
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = MAX_LINES

    def to_query(self) -> UsageQuery:
        """Builds a query for one line more than the limit, to detect whether there are more."""
        now = datetime.now(UTC)
        tomorrow = _midnight(now + timedelta(days=1))
        end = self.end or max(tomorrow, self.start or tomorrow)
        start = self.start or _default_start(end)
        if start > end:
            raise InvalidRequest("from: must not be later than `to`", field="from", help_text="Swap the two values.")
        if min(end, max(now, start)) - start > _MAX_PERIOD:
            raise InvalidRequest(
                f"from: must be at most {_MAX_PERIOD.days} days before `to`",
                field="from",
                help_text="Split the period into several requests.",
            )
        return UsageQuery(start=start, end=end, group_by=frozenset(self.group_by), limit=self.limit + 1)


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
    agent: str | None = None
    model: str | None = None
    session: str | None = None
    harness: str | None = None
    key: str | None = None
    member: str | None = None
    member_name: str | None = None
    turns: int
    statuses: dict[str, int]
    seconds: float
    usage: UsageAnswer
    unpriced_turns: int


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
    return {
        "type": "usage",
        **line.group,
        "turns": line.turns,
        "statuses": {**line.statuses},
        "seconds": round(line.seconds, 3),
        "usage": serialize_token_usage(line.usage),
        "unpriced_turns": line.unpriced_turns,
    }
