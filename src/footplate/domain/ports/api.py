"""The ports (interfaces) that the API uses: reads, changes, event streams, API keys, diffs and health checks.

Every change happens in a unit of work, which is one transaction. `RequestAttempt` identifies a request, so a request
that is retried after a lost response takes effect only once. Methods that take a principal (the authenticated caller)
raise `NotFound` for an id of another organisation.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, Protocol

from footplate.domain.agents.agents_and_config import Agent, EnvironmentRecord
from footplate.domain.audit import AuditReads, AuditUnit
from footplate.domain.files.snapshots import ChangeState, DiffSummary, TreeDiff
from footplate.domain.files.uploaded_files import FileReads, FileUnit
from footplate.domain.json import JsonObject
from footplate.domain.organisations.limits import LimitUnit
from footplate.domain.organisations.members import MemberReads, MemberUnit
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience
from footplate.domain.pagination import Order, Page
from footplate.domain.policy.approvals import ApprovalReads
from footplate.domain.policy.permissions import PolicyReads, PolicyUnit
from footplate.domain.policy.policy_replay import ReplayReads
from footplate.domain.ports.deployment_health import WorkerReads
from footplate.domain.ports.harness import Entry
from footplate.domain.ports.notifications import NotificationReads, NotificationUnit
from footplate.domain.ports.transcript_exchange import ImportedLine, TranscriptOrigin
from footplate.domain.ports.webhooks import WebhookReads, WebhookUnit
from footplate.domain.projects.project import NO_PROJECTS, ProjectReads, ProjectSelection, ProjectUnit
from footplate.domain.sessions.batches import BatchReads, BatchUnit
from footplate.domain.sessions.comments import CommentReads, CommentUnit, LineRange
from footplate.domain.sessions.deployments import (
    CheckContext,
    Deployment,
    DeploymentDefinition,
    DeploymentReads,
    DeploymentRun,
)
from footplate.domain.sessions.ending import SessionEnd
from footplate.domain.sessions.events import Position
from footplate.domain.sessions.feed import FeedViewer
from footplate.domain.sessions.inbox import InboxReads, InboxUnit
from footplate.domain.sessions.session_templates import PinUnit, SessionTemplateReads, SessionTemplateUnit
from footplate.domain.sessions.steps import Playback, Step, StepDefinition, StepState
from footplate.domain.sessions.triggers import SignedDelivery, TriggerDelivery, TriggerReads, TriggerUnit
from footplate.domain.sessions.turns import (
    Mode,
    Session,
    SessionState,
    SessionStatus,
    SessionToWake,
    TotalUsage,
    Turn,
    WhenBusy,
)
from footplate.domain.text.search_tokens import SearchTerm

PlaybackAction = Literal["play", "pause", "next"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAttempt:
    """One attempt at a POST request, identified by its headers and body."""

    method: str
    path: str
    body_hash: bytes
    idempotency_key: str | None = None
    retry_count: int = 0


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A stored response, which is returned again to a retry."""

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
    """The point at which a session is forked: an event, a position, or without either its newest event."""

    event_id: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """The requested diff: of a turn, or between two events. Without either: everything since the session started."""

    turn_id: str | None = None
    old: ForkPoint | None = None
    """None: the initial files."""
    new: ForkPoint = ForkPoint()
    project_id: str | None = None
    """Only this project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptImport:
    """A transcript that is imported as a session."""

    digest: bytes
    """The hash of its lines, which identifies the transcript."""
    origin: TranscriptOrigin
    pieces: Iterator[ImportedLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedInputs:
    """The result of accepting inputs, and the notifications to send after the commit."""

    organisation: str
    session_id: str
    positions: Sequence[Position] = ()
    wake: bool = False
    """Whether to wake the session's workflow."""
    nudge: bool = False
    """Whether to nudge the running turn to check its inputs."""
    ends_wait: bool = False
    """Whether an interrupt is for a turn that waits for its next attempt."""
    prepare: bool = False
    """Whether to prepare for a first input: the session is new, and has none yet."""
    to_wake: Sequence[SessionToWake] = ()
    """Organisation and id of other sessions that have work now."""
    cancelled_group: str | None = None
    """The batch whose remaining jobs are to be ended."""
    changed_deployment: str | None = None
    """The deployment whose schedule in Temporal has to be updated."""
    cancels_children: bool = False
    """Whether the turn that waits for children was interrupted or has ended, so they have to be cancelled."""
    changes_feed: bool = False
    """Whether the feed has a change that is not an event of the log, such as a new session."""
    ends_when_idle: bool = False
    """The session was created together with its task or ends when it is done, so there may be no further turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    agent_id: str | None = None
    agent_version: int | None = None
    statuses: Sequence[SessionStatus] = ()
    parent_id: str | None = None
    group_id: str | None = None
    forked_from: str | None = None
    """Only forks of this session."""
    deployment_id: str | None = None
    is_pinned: bool | None = None
    """Whether the caller has pinned them. None: both."""
    states: Sequence[SessionState] = ()
    project_id: str | None = None
    owner_id: str | None = None
    harness: str | None = None
    is_default_harness: bool = False
    """Whether sessions whose agents name no harness run on it."""
    is_stuck: bool = False
    """Only sessions that have work and do not move."""
    terms: Sequence[SearchTerm] | None = None
    """What the sessions must contain."""


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
    """The thread of a subagent. None: the primary thread, which is the session's own event list."""
    with_extensions: bool = False
    """Whether event types that the reference API does not have are included."""


class StepReads(Protocol):
    async def step(self, principal: Principal, session_id: str, step_id: str) -> Step: ...
    async def steps(
        self, principal: Principal, session_id: str, *, states: Sequence[StepState], limit: int, after: int | None
    ) -> Sequence[Step]:
        """Return steps in the order of the queue. `after` is a sort key."""

    async def playback(self, principal: Principal, session_id: str) -> Playback: ...


class StepUnit(Protocol):
    """Changes to a queue. Only pending steps can be changed."""

    async def add_steps(
        self,
        principal: Principal,
        session_id: str,
        definitions: Sequence[tuple[StepDefinition, JsonObject]],
        *,
        before: str | None,
    ) -> tuple[Sequence[Step], AcceptedInputs]:
        """Add steps at the end of the queue, or before another step. Each comes with the overrides of its turn."""

    async def edit_step(
        self, principal: Principal, session_id: str, step_id: str, change: Callable[[Step], StepDefinition]
    ) -> tuple[Step, AcceptedInputs]: ...
    async def move_step(
        self, principal: Principal, session_id: str, step_id: str, *, before: str | None
    ) -> tuple[Step, AcceptedInputs]:
        """Move a step before another one, or to the end."""

    async def remove_step(self, principal: Principal, session_id: str, step_id: str) -> tuple[Step, AcceptedInputs]: ...
    async def retry_step(
        self, principal: Principal, session_id: str, step_id: str, *, play: bool, check: Callable[[Step], None]
    ) -> tuple[Step, AcceptedInputs]:
        """Repeat a failed or cancelled step with a copy at the front of the queue. `play`: also play the session.
        `check` may refuse the step.
        """

    async def open_terminal(self, principal: Principal, session_id: str) -> tuple[Step, AcceptedInputs]:
        """Open the session's terminal for a person, with a step at the front of the queue, and record it in the audit
        trail. If it is already open, or about to be opened, return that step.
        """

    async def submit_result(
        self, principal: Principal, session_id: str, step_id: str, result: JsonObject, *, is_error: bool
    ) -> tuple[Step, AcceptedInputs]:
        """Submit the result of an external step, which is accepted once."""

    async def change_playback(
        self, principal: Principal, session_id: str, action: PlaybackAction
    ) -> tuple[Playback, AcceptedInputs]: ...


class DeploymentUnit(Protocol):
    """Changes to deployments. Who creates, changes or resumes one is the member in whose name its schedule runs."""

    async def create_deployment(self, principal: Principal, definition: DeploymentDefinition) -> Deployment: ...
    async def update_deployment(
        self, principal: Principal, deployment_id: str, change: Callable[[Deployment], DeploymentDefinition]
    ) -> Deployment: ...
    async def pause_deployment(self, principal: Principal, deployment_id: str) -> Deployment: ...
    async def unpause_deployment(self, principal: Principal, deployment_id: str) -> Deployment: ...
    async def archive_deployment(self, principal: Principal, deployment_id: str) -> Deployment:
        """End its schedule. Its sessions and runs stay."""

    async def run_deployment(
        self, principal: Principal, deployment_id: str, *, check_context: CheckContext
    ) -> tuple[DeploymentRun, Sequence[AcceptedInputs]]:
        """Start a run now, in the name of the principal. A run that creates no session is recorded with its error."""


class Reads(
    ProjectReads,
    FileReads,
    PolicyReads,
    ApprovalReads,
    AuditReads,
    ReplayReads,
    MemberReads,
    StepReads,
    BatchReads,
    WebhookReads,
    NotificationReads,
    DeploymentReads,
    TriggerReads,
    InboxReads,
    CommentReads,
    SessionTemplateReads,
    WorkerReads,
    Protocol,
):
    async def agent(self, principal: Principal, agent_id: str, version: int | None = None) -> Agent: ...
    async def agents(self, principal: Principal, page: Page) -> Sequence[Agent]: ...
    async def agent_versions(
        self, principal: Principal, agent_id: str, *, limit: int, before_version: int | None
    ) -> Sequence[Agent]:
        """Return the versions of an agent, newest first."""

    async def environment(self, principal: Principal, environment_id: str) -> EnvironmentRecord: ...
    async def environments(self, principal: Principal, page: Page) -> Sequence[EnvironmentRecord]: ...
    async def count_workers_by_backend(self) -> Mapping[str, int]:
        """Return how many running workers offer each backend. One without workers may be absent."""

    async def check_session_visible(self, principal: Principal, session_id: str) -> None:
        """Raise `NotFound` if the session does not exist or the principal cannot see it."""

    async def find_visible_sessions(self, principal: Principal, session_ids: Sequence[str]) -> frozenset[str]:
        """Return those of the sessions that exist and that the principal can see."""

    async def session(self, principal: Principal, session_id: str) -> Session: ...
    async def total_usage(self, principal: Principal, session_id: str) -> TotalUsage:
        """Return the usage of a session and of all sessions below it."""

    async def sessions(self, principal: Principal, page: Page, where: SessionFilter) -> Sequence[Session]: ...
    async def find_pinned_sessions(self, principal: Principal, session_ids: Sequence[str]) -> frozenset[str]:
        """Return those of the sessions that the principal has pinned."""

    async def count_sessions(
        self, principal: Principal, page: Page, where: SessionFilter
    ) -> Mapping[SessionState, int]:
        """Return the number of sessions in each state. The limit and the position of the page do not matter."""

    async def events(self, principal: Principal, session_id: str, page: EventPage) -> Sequence[Position]:
        """Each event once, with the latest `processed_at`; `seq` is its first position."""

    def conversation(self, principal: Principal, session_id: str) -> AsyncIterator[Entry]:
        """Iterate over all current entries of the conversation. They are read on demand."""

    async def turn(self, principal: Principal, session_id: str, turn_id: str) -> Turn: ...
    async def turns(self, principal: Principal, session_id: str, *, limit: int, before: str | None) -> Sequence[Turn]:
        """Return turns, newest first. `before` is a turn id."""


class UnitOfWork(
    ProjectUnit,
    FileUnit,
    PolicyUnit,
    MemberUnit,
    LimitUnit,
    AuditUnit,
    StepUnit,
    BatchUnit,
    WebhookUnit,
    NotificationUnit,
    DeploymentUnit,
    TriggerUnit,
    InboxUnit,
    CommentUnit,
    SessionTemplateUnit,
    PinUnit,
    Protocol,
):
    """One transaction of the API."""

    @property
    def stored_response(self) -> StoredResponse | None:
        """The response that this request already received. If it is set, no other method may be called."""

    @property
    def response_id(self) -> int | None:
        """The id of the stored response, if it is deleted once the client has received it."""

    async def store_response(self, response: StoredResponse) -> None: ...

    async def process_trigger_delivery(
        self, organisation: str, signed: SignedDelivery, *, check_context: CheckContext
    ) -> tuple[TriggerDelivery, AcceptedInputs | None]:
        """Act on a delivery to a trigger, unless it did before. A delivery that fails is recorded with its error."""

    async def create_agent(
        self, principal: Principal, *, name: str, definition: JsonObject, metadata: dict[str, str]
    ) -> Agent: ...
    async def update_agent(
        self, principal: Principal, agent_id: str, *, expected_version: int | None, change: Callable[[Agent], Agent]
    ) -> Agent:
        """Lock the newest version and store the result of `change` as the next one, unless the content is the same."""

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
        selection: ProjectSelection = NO_PROJECTS,
        permissions: JsonObject | None = None,
        audience: Audience = EVERYONE,
        ends_when_done: bool = False,
        deployment_id: str | None = None,
        backend: str | None = None,
    ) -> tuple[Session, AcceptedInputs]: ...
    async def import_session(
        self,
        principal: Principal,
        transcript: TranscriptImport,
        *,
        agent: JsonObject,
        environment_id: str,
        title: str | None,
        metadata: dict[str, str],
        context: JsonObject,
        audience: Audience = EVERYONE,
    ) -> tuple[Session, AcceptedInputs]:
        """Create a session with this history. If the transcript was imported before, return that session."""

    async def fork_session(
        self,
        principal: Principal,
        session_id: str,
        *,
        point: ForkPoint,
        environment_id: str | None,
        change: Callable[[Session], Session],
        inputs: Sequence[Input],
    ) -> tuple[Session, AcceptedInputs]:
        """Create a session that starts with the log and the conversation of this one up to a point. Both are
        referenced, not copied.

        `change` derives the fork's title, metadata and agent from the parent's.
        """

    async def update_session(
        self, principal: Principal, session_id: str, change: Callable[[Session], Session]
    ) -> tuple[Session, AcceptedInputs]: ...
    async def end_session(
        self, principal: Principal, session_id: str, end: SessionEnd
    ) -> tuple[Session, AcceptedInputs]:
        """End the session, or ask its running turn to stop and to end it. Repeating the same request is safe."""

    async def archive_session(self, principal: Principal, session_id: str) -> tuple[Session, AcceptedInputs]:
        """Archive the session. Its open turn and pending steps end."""

    async def delete_session(self, principal: Principal, session_id: str) -> AcceptedInputs: ...
    async def send(self, principal: Principal, session_id: str, inputs: Sequence[Input]) -> AcceptedInputs: ...


class UnitOfWorkFactory(Protocol):
    def unit(self, principal: Principal, attempt: RequestAttempt | None) -> AbstractAsyncContextManager[UnitOfWork]:
        """Open a unit of work, which commits if the block succeeds. A retry waits for an earlier attempt that still
        runs, and then gets its response.
        """

    async def discard_response(self, response_id: int) -> None:
        """Delete a stored response that the client has received: there will be no retry. Best effort."""


class Notifier(Protocol):
    """Notifies the rest of the system of a commit. Best effort: the sweep and the event streams recover missed ones."""

    async def notify_accepted(self, accepted: AcceptedInputs) -> None: ...


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a client's stream resumes: after position `seq`, and within a preview after `offset` of its text."""

    seq: int
    preview_id: str | None = None
    offset: int = 0


class EventStreams(Protocol):
    def frames(
        self,
        organisation: str,
        session_id: str,
        *,
        cursor: Cursor | None,
        deltas: frozenset[str],
        thread_id: str | None = None,
        with_extensions: bool = False,
    ) -> AsyncIterator[bytes]:
        """Stream encoded SSE frames. Without a cursor, the stream starts now, and its first item is a frame with the
        start position. The stream ends only when the session is deleted.

        Empty bytes mean that nothing happened for a while, so the caller sends a keep-alive; as the first item they
        have no meaning. `thread_id`, `with_extensions`: as in `EventPage`.
        """


class FeedStreams(Protocol):
    def frames(self, viewer: FeedViewer, *, after: int | None) -> AsyncIterator[bytes]:
        """Stream the changes that the viewer can see as encoded SSE frames. Without `after`, the stream starts now, and
        its first item is a frame with the start position; otherwise the first item is empty.
        """


class Keys(Protocol):
    async def authenticate(self, secret: str) -> Principal:
        """Return the principal of an API key. Raises `Unauthenticated`."""


class Diffs(Protocol):
    async def find_diffs(self, principal: Principal, session_id: str, request: DiffRequest) -> Sequence[TreeDiff]:
        """Return the diff of each tree, in the order of the session's projects."""

    async def list_changes(self, diff: TreeDiff) -> DiffSummary: ...

    async def quote_lines(self, diff: TreeDiff, lines: LineRange) -> str:
        """Return the text of lines that the diff shows. Raises `InvalidRequest` for others."""

    def stream_patch(
        self, diff: TreeDiff, state: ChangeState | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Stream a patch for `git apply`. It is generated on demand; leaving the context early cancels it."""


OK: Final = "ok"
"""The state of a service that responds. Any other text is the problem."""


@dataclass(frozen=True, slots=True)
class HealthReport:
    parts: Mapping[str, str]
    """The state of each service that the API uses."""
    is_ready: bool
    """Whether the API can serve requests, possibly with fewer functions."""


class Health(Protocol):
    async def check(self) -> HealthReport: ...
