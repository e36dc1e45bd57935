"""Limits on what an organisation, and each of its members, uses at the same time. They hold across all processes.

The operator of the server limits organisations: in the settings, or one of them in the database. The administrators of
an organisation can make these limits stricter, and can limit its members.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from footplate.domain.errors import Refused
from footplate.domain.organisations.principals import Principal


class LimitName(StrEnum):
    CONCURRENT_TURNS = "concurrent_turns"
    """Turns that run or wait for a retry. Further turns are not refused: they wait."""
    QUEUED_STEPS = "queued_steps"
    """Accepted messages whose turn has not begun."""
    SESSIONS = "sessions"
    """Sessions that are not archived."""
    STREAMS = "streams"
    """Open event streams."""
    REQUESTS_PER_SECOND = "requests_per_second"
    """Requests, on average over `RATE_WINDOW_SECONDS`."""
    STORED_BYTES = "stored_bytes"
    """Size of all uploaded files."""


ORGANISATION: Final = "organisation"
"""The scope of a limit for the organisation as a whole."""
EACH_MEMBER: Final = "each_member"
"""The scope of a limit for every member that has none of its own. The scope of one member is its id."""
RATE_WINDOW_SECONDS: Final = 10
MAX_VALUE: Final = 1 << 53
"""The largest integer that every JSON parser reads exactly."""

_NOUNS: Final[Mapping[LimitName, str]] = {
    LimitName.CONCURRENT_TURNS: "running turns",
    LimitName.QUEUED_STEPS: "queued messages",
    LimitName.SESSIONS: "sessions that are not archived",
    LimitName.STREAMS: "open streams",
    LimitName.REQUESTS_PER_SECOND: "requests per second",
    LimitName.STORED_BYTES: "bytes of uploaded files",
}
_REMEDIES: Final[Mapping[LimitName, str]] = {
    LimitName.CONCURRENT_TURNS: "Wait for a turn to end.",
    LimitName.QUEUED_STEPS: "Wait until queued messages have been processed.",
    LimitName.SESSIONS: "Archive or delete sessions that you no longer need.",
    LimitName.STREAMS: "Close a stream.",
    LimitName.REQUESTS_PER_SECOND: "Send requests more slowly.",
    LimitName.STORED_BYTES: "Delete files that you no longer need.",
}
_RETRY_SECONDS: Final[Mapping[LimitName, float]] = {
    LimitName.CONCURRENT_TURNS: 5.0,
    LimitName.QUEUED_STEPS: 5.0,
    LimitName.SESSIONS: 60.0,
    LimitName.STREAMS: 5.0,
    LimitName.REQUESTS_PER_SECOND: 1.0,
    LimitName.STORED_BYTES: 60.0,
}


class OrganisationLimitExceeded(Refused):
    code = "limit_exceeded"
    status = 429

    def __init__(self, limit: "AppliedLimit", *, retry_after: float | None = None) -> None:
        super().__init__(
            f"The limit {limit.name} of {limit.subject} is reached: {limit.value} {_NOUNS[limit.name]}.",
            help_text=f"{_REMEDIES[limit.name]} `footplate limits` shows all limits, and an administrator can change "
            "them.",
        )
        self.limit = limit
        self.should_retry = limit.name is LimitName.REQUESTS_PER_SECOND
        """Whether clients should retry by themselves. The other limits have room only when something has ended."""
        self.retry_after = retry_after or _RETRY_SECONDS[limit.name]


@dataclass(frozen=True, slots=True)
class AppliedLimit:
    """A limit that applies to a principal: one of its own, or one of its organisation."""

    name: LimitName
    value: int
    organisation: str
    member: Principal | None = None
    """None: the limit of the organisation as a whole."""

    @property
    def subject(self) -> str:
        return "the organisation" if self.member is None else f"the member {self.member.name!r}"

    @property
    def key(self) -> str:
        """A name for a counter of this limit."""
        return self.organisation if self.member is None else f"{self.organisation}/{self.member.id}"

    def count_used(self, used_by_member: Mapping[str | None, int]) -> int:
        return sum(used_by_member.values()) if self.member is None else used_by_member.get(self.member.id, 0)

    def check(self, used_by_member: Mapping[str | None, int], *, adding: int = 1) -> None:
        """Raise `OrganisationLimitExceeded` if there is no room for `adding` more."""
        if self.count_used(used_by_member) + adding > self.value:
            raise OrganisationLimitExceeded(self)


LimitValues = Mapping[tuple[LimitName, str], int]
"""Limits by name and scope."""


@dataclass(frozen=True, slots=True)
class OrganisationLimits:
    """All limits of one organisation."""

    organisation: str
    operator: LimitValues = field(default_factory=dict)
    """The operator's limits, for the scopes `ORGANISATION` and `EACH_MEMBER`."""
    own: LimitValues = field(default_factory=dict)
    """The limits that the organisation's administrators have set."""

    def has_limit(self, name: LimitName) -> bool:
        return any(name is limited for limited, _ in (*self.operator, *self.own))

    def value(self, name: LimitName, scope: str) -> int | None:
        """Return the strictest limit for a scope, which may be the id of a member. None: unlimited."""
        if scope in {ORGANISATION, EACH_MEMBER}:
            own = self.own.get((name, scope))
        else:
            own = self.own.get((name, scope), self.own.get((name, EACH_MEMBER)))
        values = (self.operator_value(name, scope), own)
        return min((value for value in values if value is not None), default=None)

    def operator_value(self, name: LimitName, scope: str) -> int | None:
        """Return the operator's limit for a scope, which may be the id of a member. None: unlimited."""
        return self.operator.get((name, ORGANISATION if scope == ORGANISATION else EACH_MEMBER))

    def describe_use(
        self, name: LimitName, scope: str, used: float | None = None, member_name: str | None = None
    ) -> "LimitUse":
        return LimitUse(
            name=name,
            scope=scope,
            value=self.value(name, scope),
            used=used,
            member_name=member_name,
            own_value=self.own.get((name, scope)),
            operator_value=self.operator_value(name, scope),
        )

    def find_applied(self, name: LimitName, principal: Principal) -> Sequence[AppliedLimit]:
        """Return the limits that apply to the principal: its own first, then that of the organisation."""
        own, whole = self.value(name, principal.id), self.value(name, ORGANISATION)
        found = [] if own is None else [AppliedLimit(name, own, self.organisation, principal)]
        return found if whole is None else [*found, AppliedLimit(name, whole, self.organisation)]


@dataclass(frozen=True, slots=True)
class DeferredTurn:
    """A session whose next turn waits because a limit on concurrent turns is reached."""

    session_id: str
    scope: str
    """The scope of the limit: `ORGANISATION`, or the id of the member who sent the message."""


def choose_turns_to_start(
    deferred: Sequence[DeferredTurn], running: Mapping[str | None, int], limits: OrganisationLimits
) -> list[str]:
    """Return the sessions whose turns may start now. `deferred` is sorted by age, and the oldest ones come first.

    A turn that waits for the organisation is not checked against its member's limit: the claim does that, and defers
    the turn again with the other scope.
    """
    used = dict(running)
    chosen = []
    for turn in deferred:
        whole = limits.value(LimitName.CONCURRENT_TURNS, ORGANISATION)
        if whole is not None and sum(used.values()) >= whole:
            break
        own = None if turn.scope == ORGANISATION else limits.value(LimitName.CONCURRENT_TURNS, turn.scope)
        if own is None or used.get(turn.scope, 0) < own:
            used[turn.scope] = used.get(turn.scope, 0) + 1
            chosen.append(turn.session_id)
    return chosen


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit with its present use."""

    name: LimitName
    scope: str
    """`ORGANISATION`, `EACH_MEMBER` or the id of a member."""
    value: int | None
    """None: unlimited."""
    used: float | None = None
    """None: not counted. Requests and streams are counted only while they have a limit."""
    member_name: str | None = None
    own_value: int | None = None
    """What the organisation's administrators have set for exactly this scope. None: nothing."""
    operator_value: int | None = None
    """The operator's limit, which the organisation's cannot exceed. None: there is none."""


class StreamLease(Protocol):
    """An open stream. It counts until it is released, or until its process is lost."""

    def release(self) -> None:
        """Safe to call twice."""


class LimitGuard(Protocol):
    """Checks the limits that apply before a request is processed."""

    async def check_request(self, principal: Principal) -> None:
        """Count a request. Raises `OrganisationLimitExceeded` if there are too many."""

    async def open_stream(self, principal: Principal) -> StreamLease:
        """Count an open stream. Raises `OrganisationLimitExceeded` if there are too many."""

    async def check_stored_bytes(self, principal: Principal, size: int) -> None:
        """Raise `OrganisationLimitExceeded` if there is no room for a file of this size."""

    async def read_limits(self, principal: Principal) -> Sequence[LimitUse]:
        """Return the limits of the organisation and its members with their present use."""


class LimitUnit(Protocol):
    """The part of the API's unit of work that changes limits. Every change is in the audit trail."""

    async def set_limit(self, principal: Principal, name: LimitName, scope: str, value: int | None) -> None:
        """Set a limit of the principal's organisation, or remove it. Raises `InvalidRequest` if it exceeds the
        operator's limit.
        """
