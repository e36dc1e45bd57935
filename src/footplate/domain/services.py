"""What the api asks of the store, the engine and the live stream, as ports.

Reads stand alone. Everything that changes something happens inside a `Unit`: one transaction, de-duplicated by the
request's `Attempt`, so that a request that is retried after its answer was lost takes effect once.
Every method takes the organisation from the principal: an id of another organisation is `NotFound`.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from footplate.domain.agents import Agent, EnvironmentRecord
from footplate.domain.approvals import ApprovalReads
from footplate.domain.audit import AuditReads, AuditUnit
from footplate.domain.events import Position
from footplate.domain.files import FileReads, FileUnit
from footplate.domain.json import JsonObject
from footplate.domain.pages import Order, Page
from footplate.domain.permissions import PolicyReads, PolicyUnit
from footplate.domain.ports import Entry
from footplate.domain.principals import Principal
from footplate.domain.projects import NO_PROJECTS, Choice, ProjectReads, ProjectUnit
from footplate.domain.replays import ReplayReads
from footplate.domain.snapshots import FileChange, TreeDiff
from footplate.domain.transcripts import Origin, Piece
from footplate.domain.turns import Mode, Session, SessionStatus, Turn, WhenBusy


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try of one POST, as far as headers tell."""

    method: str
    path: str
    body_hash: bytes
    idempotency_key: str | None = None
    retry_count: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A stored answer, given again to a retry."""

    status: int
    body: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A validated `user.*` event on its way into the log."""

    type: str
    body: JsonObject
    when_busy: WhenBusy = WhenBusy.QUEUE
    overrides: JsonObject = field(default_factory=dict)
    context: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPoint:
    """Where a session is forked: at an event, at a position, or without either at its newest event."""

    event_id: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffAsked:
    """Which difference: that of a turn, or from one event to another; without either, all since the files began."""

    turn_id: str | None = None
    old: ForkPoint | None = None
    """None: as they began."""
    new: ForkPoint = ForkPoint()
    project_id: str | None = None
    """Of this one alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A transcript on its way into a session."""

    digest: bytes
    """Of its lines: what has the same is the same."""
    origin: Origin
    pieces: Iterator[Piece]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a send did, and what must be told to others once it is committed."""

    organisation: str
    session_id: str
    positions: Sequence[Position] = ()
    wake: bool = False
    """The session's workflow has to be woken."""
    nudge: bool = False
    """A running turn has to look at its inputs."""
    prepare: bool = False
    """The session is new, and its first input may come soon."""
    ends_when_idle: bool = False
    """The session was created with its task: another turn may never come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    agent_id: str | None = None
    agent_version: int | None = None
    statuses: Sequence[SessionStatus] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    limit: int
    order: Order = "asc"
    after_seq: int | None = None
    """Exclusive, in the direction of `order`."""
    types: Sequence[str] = ()
    created_gt: datetime | None = None
    created_gte: datetime | None = None
    created_lt: datetime | None = None
    created_lte: datetime | None = None
    thread_id: str | None = None
    """Of a subagent; None: the primary thread's, which are what the session itself shows."""


class Reads(ProjectReads, FileReads, PolicyReads, ApprovalReads, AuditReads, ReplayReads, Protocol):
    async def agent(self, principal: Principal, agent_id: str, version: int | None = None) -> Agent: ...
    async def agents(self, principal: Principal, page: Page) -> Sequence[Agent]: ...
    async def agent_versions(
        self, principal: Principal, agent_id: str, *, limit: int, before_version: int | None
    ) -> Sequence[Agent]:
        """Newest first."""

    async def environment(self, principal: Principal, environment_id: str) -> EnvironmentRecord: ...
    async def environments(self, principal: Principal, page: Page) -> Sequence[EnvironmentRecord]: ...
    async def session(self, principal: Principal, session_id: str) -> Session: ...
    async def sessions(self, principal: Principal, page: Page, where: SessionFilter) -> Sequence[Session]: ...
    async def events(self, principal: Principal, session_id: str, page: EventPage) -> Sequence[Position]:
        """Each event once, with the latest `processed_at`; `seq` is its first position."""

    def conversation(self, principal: Principal, session_id: str) -> AsyncIterator[Entry]:
        """All entries that there are by now, read as they are asked for."""

    async def turn(self, principal: Principal, session_id: str, turn_id: str) -> Turn: ...
    async def turns(self, principal: Principal, session_id: str, *, limit: int, before: str | None) -> Sequence[Turn]:
        """Newest first; `before` is a turn id."""


class Unit(ProjectUnit, FileUnit, PolicyUnit, AuditUnit, Protocol):
    """One transaction."""

    @property
    def replay(self) -> Answer | None:
        """The answer that this request already got; nothing else may then be called."""

    @property
    def answer_id(self) -> int | None:
        """Of the stored answer, if it is to be forgotten once it is `delivered`."""

    async def remember(self, answer: Answer) -> None: ...

    async def create_agent(
        self, principal: Principal, *, name: str, definition: JsonObject, metadata: dict[str, str]
    ) -> Agent: ...
    async def update_agent(
        self, principal: Principal, agent_id: str, *, expected_version: int | None, change: Callable[[Agent], Agent]
    ) -> Agent:
        """Lock the newest version and store what `change` makes of it as the next; the same content makes none."""

    async def archive_agent(self, principal: Principal, agent_id: str) -> Agent: ...
    async def create_environment(
        self,
        principal: Principal,
        *,
        name: str,
        description: str | None,
        config: JsonObject,
        metadata: dict[str, str],
    ) -> EnvironmentRecord: ...
    async def update_environment(
        self, principal: Principal, environment_id: str, change: Callable[[EnvironmentRecord], EnvironmentRecord]
    ) -> EnvironmentRecord: ...
    async def archive_environment(self, principal: Principal, environment_id: str) -> EnvironmentRecord: ...
    async def delete_environment(self, principal: Principal, environment_id: str) -> None: ...
    async def create_session(
        self,
        principal: Principal,
        *,
        agent: JsonObject,
        environment_id: str,
        title: str | None,
        metadata: dict[str, str],
        context: JsonObject,
        inputs: Sequence[Input],
        mode: Mode = Mode.INTERACTIVE,
        choice: Choice = NO_PROJECTS,
        permissions: JsonObject | None = None,
    ) -> tuple[Session, Accepted]: ...
    async def import_session(
        self,
        principal: Principal,
        arrival: Arrival,
        *,
        agent: JsonObject,
        environment_id: str,
        title: str | None,
        metadata: dict[str, str],
        context: JsonObject,
    ) -> tuple[Session, Accepted]:
        """A session that begins with this history; the one that there is, if the transcript came before."""

    async def fork_session(
        self,
        principal: Principal,
        session_id: str,
        *,
        point: ForkPoint,
        environment_id: str | None,
        change: Callable[[Session], Session],
        inputs: Sequence[Input],
    ) -> tuple[Session, Accepted]:
        """A new session that begins with the log and the conversation of this one up to a point, both as pointers.

        `change` makes the fork's title, metadata and agent of the parent's.
        """

    async def update_session(
        self, principal: Principal, session_id: str, change: Callable[[Session], Session]
    ) -> tuple[Session, Accepted]: ...
    async def archive_session(self, principal: Principal, session_id: str) -> Session: ...
    async def delete_session(self, principal: Principal, session_id: str) -> Accepted: ...
    async def send(self, principal: Principal, session_id: str, inputs: Sequence[Input]) -> Accepted: ...


class Units(Protocol):
    def unit(self, principal: Principal, attempt: Attempt | None) -> AbstractAsyncContextManager[Unit]:
        """Commits on a clean exit. A retry waits for its first try, if that still runs, then sees its answer."""

    async def delivered(self, answer_id: int) -> None:
        """The client has this answer: no retry will ask for it. Best effort."""


class Notifier(Protocol):
    """Tells the rest of the system what was committed. Best effort: a sweep and the tails heal what it missed."""

    async def accepted(self, accepted: Accepted) -> None: ...


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a client's stream goes on: after position `seq`; inside a preview, after `offset` of its text."""

    seq: int
    preview_id: str | None = None
    offset: int = 0


class Tails(Protocol):
    def frames(
        self,
        organisation: str,
        session_id: str,
        *,
        cursor: Cursor | None,
        deltas: frozenset[str],
        thread_id: str | None = None,
    ) -> AsyncIterator[bytes]:
        """SSE frames, already encoded and coalesced; no cursor means from now on. Never ends by itself
        but when the session is deleted. Empty bytes mean: nothing for a while, send a keep-alive; as the first item
        they mean nothing, and without a cursor that one is a frame that says where the stream begins. `thread_id`: as
        of an `EventPage`.
        """


class Keys(Protocol):
    async def authenticate(self, secret: str) -> Principal:
        """Raises `Unauthenticated`."""


class Diffs(Protocol):
    async def find(self, principal: Principal, session_id: str, asked: DiffAsked) -> Sequence[TreeDiff]:
        """Of each tree, in the order of the session's projects."""

    async def changes(self, diff: TreeDiff) -> Sequence[FileChange]: ...

    def patch(self, diff: TreeDiff) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Pieces of what `git apply` takes, made as they are asked for. Who leaves early ends it."""


class Health(Protocol):
    async def check(self) -> dict[str, str]:
        """Part by part: `ok`, or what is wrong."""
