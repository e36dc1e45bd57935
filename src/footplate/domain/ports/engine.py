"""The ports (interfaces) that the engine uses to run a turn: stores, live stream, environments, working trees and model
access.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.agents.environment_config import EnvironmentConfig
from footplate.domain.audit import AuditEntry
from footplate.domain.files.session_outputs import OutputChanges, SessionOutputs
from footplate.domain.files.snapshots import (
    NO_FILES,
    ChildFiles,
    CollectedCommits,
    SessionFiles,
    StoredSnapshot,
    TreeMerge,
    TreeSnapshot,
)
from footplate.domain.json import JsonObject
from footplate.domain.network.command_network_access import Network
from footplate.domain.organisations.principals import Author
from footplate.domain.policy.permissions import Layer
from footplate.domain.ports.harness import Endpoint, Entry, Environment, FullOutput, Gate, Preview, SteerMessage
from footplate.domain.ports.terminals import TerminalProcess, TerminalSize
from footplate.domain.projects.project import BaseCommit, SessionProject
from footplate.domain.projects.project_instructions import ProjectInstructions
from footplate.domain.sessions.events import Event, Position, PreviewType, Usage
from footplate.domain.sessions.shell_state import NEW_SHELL, ShellState
from footplate.domain.sessions.steps import ClaimedStep
from footplate.domain.sessions.turns import SessionToWake, TurnOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A turn that this worker has claimed."""

    organisation: str
    session_id: str
    epoch: int
    turn_id: str
    attempt: int
    failures: int
    """How many of the earlier attempts ended with a temporary failure."""
    first_seq: int
    control_seq: int
    """The position of the last control input (interrupt or steering) at the time of the claim."""
    controls_seq: int
    """Control inputs from this position on belong to the turn."""
    config: ResolvedConfig
    content: Sequence[JsonObject]
    """The content blocks of the input. In a fork, they follow those of messages that the model has not seen yet."""
    context: JsonObject
    entries: int
    """Number of entries in the conversation."""
    author: Author | None = None
    """The sender of the message that the turn processes. Senders of messages that join the turn later are not recorded
    here. None: the input has no known sender."""
    old_holder: str | None = None
    old_holder_may_live: bool = False
    """The lease of the last holder has not expired, so its commands may still be running."""
    positions: Sequence[Position] = ()
    """Positions that the claim appended, to be published."""
    queue_seconds: float | None = None
    """Seconds from the acceptance of the input to this claim. None: this is not the first attempt."""
    trace: str | None = None
    """The W3C `traceparent` of the request that sent the input, if it was traced."""
    carried: Sequence[int] = ()
    """In a fork: positions of the messages whose content comes first."""
    handovers: int = 0
    """How many attempts began without a lost worker: a stopping worker handed the turn over, or the turn had waited for
    the client."""
    remaining_seconds: float | None = None
    """Seconds until the turn's time limit. None: no limit."""
    superseded_harness: str | None = None
    """The harness of a waiting turn that this claim ended, because a new message arrived instead of the decisions."""
    files: SessionFiles = NO_FILES
    """The session's files according to the log."""
    shell: ShellState = NEW_SHELL
    """The state of the persistent shell according to the log."""
    resources: Sequence[JsonObject] = ()
    """The session's resources in the form of the API: files that must be in its tree."""
    forked_at: datetime | None = None
    """In a fork: when it was created. Older resources come from its parent."""
    step: ClaimedStep | None = None
    """The step of the queue that the turn runs. None: it processes a message that was sent as an event."""
    ends_when_done: bool = False
    """Whether the session ends with this turn if nothing else is pending."""
    frees_turn_slot: bool = False
    """Whether a turn of the organisation may wait for the end of this one, because concurrent turns are limited."""


@dataclass(frozen=True, slots=True)
class NothingToClaim:
    """There was nothing to claim."""

    positions: Sequence[Position] = ()
    retry_after: float | None = None
    """Seconds until the next step may run again after a failure."""
    to_wake: Sequence[SessionToWake] = ()
    """As for `FinishedTurn`: the last steps of the session were skipped, so it has ended."""
    needs_backend: str | None = None
    """The next turn needs this backend, which the worker does not offer."""


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    positions: Sequence[Position]
    has_more: bool
    """Whether the session has more work."""
    retry_after: float | None = None
    """Seconds until the step of the turn runs again."""
    has_ended: bool = False
    """Whether the session has ended with the turn."""
    to_wake: Sequence[SessionToWake] = ()
    """Organisation and id of other sessions that have work because this one has ended."""


@dataclass(frozen=True, slots=True)
class HeadState:
    session_id: str
    epoch: int
    control_seq: int


class ClaimStore(Protocol):
    async def claim(self, organisation: str, session_id: str, worker: str) -> Claim | NothingToClaim: ...
    async def predict_next_turn(self, organisation: str, session_id: str) -> Claim | None:
        """Return the likely next turn of the session, without its input, and without claiming it. None: the turn has
        already begun or is about to, or there will be none.
        """


class TurnStore(Protocol):
    async def append(
        self,
        claim: Claim,
        new_events: Sequence[Event],
        *,
        entries: Sequence[Entry] = (),
        usage: Usage | None = None,
        files: Sequence[TreeSnapshot] = (),
        outputs: OutputChanges | None = None,
        shell: ShellState | None = None,
    ) -> Sequence[Position]:
        """`shell`: the state of the persistent shell; None: as before. Raises `OrganisationLimitExceeded` if there is
        no room for the outputs.
        """

    async def decide_base(self, claim: Claim, project_id: str, base: BaseCommit) -> BaseCommit: ...
    async def finish(
        self,
        claim: Claim,
        outcome: TurnOutcome,
        files: Sequence[TreeSnapshot] = (),
        outputs: OutputChanges | None = None,
    ) -> FinishedTurn:
        """End the turn. With `outputs`, clients see the session's outputs as they are now."""

    async def reschedule(self, claim: Claim, error_type: str, message: str) -> Sequence[Position]: ...
    async def hand_over(self, claim: Claim) -> None: ...
    async def turn_events(self, claim: Claim) -> Sequence[Event]: ...
    async def superseded_events(self, claim: Claim) -> Sequence[Event]:
        """Return the approval requests and decisions of a waiting turn that this turn superseded."""

    async def last_completed(self, claim: Claim) -> datetime | None:
        """Return when the latest completed turn of the session began."""

    async def entries(self, claim: Claim, after: int) -> list[Entry]: ...
    async def store_output(self, claim: Claim, output: FullOutput, *, name: str | None = None) -> str: ...
    async def load_output(self, key: str, max_bytes: int) -> bytes:
        """Return the start of a stored output, at most `max_bytes`."""

    async def claim_steering(self, claim: Claim) -> tuple[Sequence[SteerMessage], Sequence[Position]]: ...
    async def find_decision(self, claim: Claim, event_id: str) -> Event | None:
        """Return the decision on the call of this event. None: it is pending."""

    async def close_approval(self, claim: Claim, event_id: str, reason: str) -> tuple[Event, Sequence[Position]]:
        """Close the request for approval. Return the final decision, and the appended positions: a denial, unless a
        person decided first.
        """

    async def claim_interrupts(self, claim: Claim) -> tuple[bool, Sequence[Position]]: ...
    async def interrupted_threads(self, claim: Claim) -> Sequence[str]:
        """Return the threads of subagents that a person has interrupted since the turn began."""


class RuleStore(Protocol):
    async def rules(
        self, organisation: str, session_id: str, *, directory: str | None = None
    ) -> Sequence[tuple[Layer, JsonObject]]:
        """Return the current rules of the organisation, the session's projects and the session. The agent's rules are
        in the turn's configuration. `directory`: the session's own working directory, if it names one; rules of
        projects at that location apply too.
        """


class HookRecords(Protocol):
    async def record(self, organisation: str, session_id: str, turn_id: str, runs: Sequence[AuditEntry]) -> None:
        """Record hook runs in the audit trail. They are committed when this returns."""


class GateFactory(Protocol):
    def create_gate(self, claim: Claim, environment: Environment) -> Gate:
        """Create the gate of one turn."""


class LeaseStore(Protocol):
    async def renew_lease(
        self, worker: str, host: str, seconds: float, session_ids: Sequence[str]
    ) -> Sequence[HeadState]: ...
    async def release_forgotten(self, worker: str, held: Sequence[str], *, older_than: float) -> Sequence[str]:
        """Release the turns that the worker claimed some seconds ago and does not hold. Return their sessions."""

    async def end_lease(self, worker: str) -> None: ...


class SweepStore(Protocol):
    async def find_sessions_to_wake(
        self, *, older_than: float, lost_for: float, limit: int
    ) -> Sequence[SessionToWake]: ...
    async def delete_stale_rows(self) -> None: ...


class DeferredTurnStore(Protocol):
    async def release_turns(self) -> Sequence[SessionToWake]:
        """Return organisation and session of the turns that waited because of a limit and may start now."""


class Chore(Protocol):
    """A background task that each sweep advances a little. It must be safe to kill at any point."""

    async def run(self) -> None: ...


class LiveTurn(Protocol):
    """The live stream of one turn. No method blocks or fails."""

    def preview(self, event_type: PreviewType) -> Preview: ...
    async def publish(self, positions: Sequence[Position]) -> None:
        """Publish events. Some are delayed briefly, to be sent together with the next ones."""

    def flush(self) -> None:
        """Send delayed events now, because the next event will take a while."""

    async def aclose(self) -> None: ...


class LiveTurns(Protocol):
    def open_turn(self, organisation: str, session_id: str) -> LiveTurn: ...


class Nudges(Protocol):
    def watch(self, session_id: str, callback: Callable[[], None]) -> AbstractContextManager[None]:
        """Call back when a control input arrives for the session. This is only an optimisation and may miss some."""


class OpenEnvironment(Environment, Protocol):
    @property
    def trees(self) -> Mapping[str, Path]:
        """The session's own trees on this machine, by project or `SCRATCH_TREE`. Empty in a user's own directory."""

    @property
    def inside_paths(self) -> Mapping[str, str]:
        """The paths of the projects' trees inside the environment."""

    @property
    def outputs(self) -> Path | None:
        """The session's output directory on this machine. None: the environment is not open yet."""

    @property
    def home_files(self) -> Path | None:
        """The session's HOME on this machine. None: the environment is not open yet, or HOME is not the session's."""

    @property
    def was_used(self) -> bool:
        """Whether any process was started in the environment."""

    @property
    def has_run_commands(self) -> bool:
        """Whether a command was started in the environment. Accesses to files do not count."""

    @property
    def platform(self) -> str:
        """The backend, and the image of a container. Known once a command has run."""

    @property
    def shell_state(self) -> ShellState | None:
        """The state of the persistent shell after its last command. None: the environment is not open yet."""

    def restore_shell(self, state: ShellState) -> None:
        """Start the persistent shell from this state. Call this before its first command."""

    async def open_terminal(self, command: str | None, size: TerminalSize) -> TerminalProcess:
        """Start an interactive shell, or this command, on a terminal of its own. Raises `Permanent` if nothing bounds
        what a person types there.
        """

    def renew(self, deadline: float) -> None:
        """Extend the lifetime of commands to this time (CLOCK_BOOTTIME seconds)."""

    async def aclose(self) -> None:
        """End all processes."""


class ModelGrant(Protocol):
    """A turn's permission to call models, with its own token. Valid while the turn runs and holds its lease."""

    @property
    def endpoints(self) -> Mapping[str, Endpoint]:
        """By connection: the address of the proxy, and the turn's token as the API key."""

    def renew(self, deadline: float) -> None:
        """Extend the validity to this time, as for an environment."""

    def pause(self) -> None:
        """Refuse model requests until the next renewal."""

    async def listen(self, path: Path) -> None:
        """Also accept requests at a Unix socket, until closed. `path` must not exist yet; its directory must."""

    async def aclose(self) -> None:
        """Revoke the token, and abort running requests."""


class ModelAccess(Protocol):
    def grant(self, *, deadline: float, organisation: str | None = None) -> ModelGrant:
        """Permit a turn to use the connections of its organisation. None: only those that all organisations share."""


class EgressProxy(Protocol):
    """The proxy through which a turn's commands reach their allowed hosts."""

    async def listen(self, path: Path) -> None:
        """Serve as an HTTP proxy at a Unix socket. `path` must not exist yet; its directory must."""

    async def aclose(self) -> None:
        """Abort all connections."""


class Egress(Protocol):
    def create_proxy(self, network: Network) -> EgressProxy: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutTarget:
    """Where to check out a session's trees on this machine, and their paths inside the environment."""

    tree: Path
    """The directory of the first project, which is the working directory."""
    inside_path: str
    additional_directory: Path
    """The parent directory of the additional projects."""
    additional_inside_path: str
    objects_inside_path: str | Callable[[Path], str] | None
    """The directory inside the environment that has the mirrors' git objects, by project. Or a function that returns
    the path inside for a path on this machine. None: the same paths as outside."""
    owner: tuple[int, int]
    """The user id and group id that own the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOutTree:
    project_id: str
    tree: Path
    inside_path: str
    objects: Path
    """The git objects of the project's mirror, which are read-only inside the environment."""
    objects_inside_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTree:
    """A session's tree on this machine, of which snapshots are taken."""

    organisation: str
    session_id: str
    project: SessionProject | None
    """None: the scratch tree."""
    files: Path
    is_additional: bool = False
    """Whether it is an additional project, beside the working directory."""
    is_home: bool = False
    """Whether it is the session's HOME."""


class Trees(Protocol):
    async def resolve_base(self, organisation: str, project: SessionProject, commit: str | None = None) -> BaseCommit:
        """Return the base commit for a session that starts now. Fetches new commits, and creates a missing repository.
        `commit`: the session starts from this commit of the repository, which need not be on a branch.

        Raises `Permanent` if the repository cannot be used, `Temporary` if its server does not respond.
        """

    async def check_out(
        self,
        organisation: str,
        session_id: str,
        projects: Sequence[SessionProject],
        target: CheckoutTarget,
        files: SessionFiles,
        *,
        deadline: float,
    ) -> Sequence[CheckedOutTree]:
        """Check out the tree of each project in the state that the log records, from the object store if necessary. A
        tree that continues from that state is left unchanged. Without projects, the scratch tree is checked out. No
        process of the session may run meanwhile.

        Raises `Fenced` instead of changing a tree after `deadline`, the end of the lease: another worker may have the
        turn by then.
        """

    async def store_snapshot(
        self,
        tree: "SessionTree",
        last: StoredSnapshot | None,
        collected: CollectedCommits | None = None,
        *,
        incremental: bool = False,
    ) -> StoredSnapshot | None:
        """Take a snapshot of the tree and upload it. Returns `last` if nothing has changed, and None if the tree is and
        always was empty.

        `collected`: the agent's own commits; None: as in `last`. `incremental`: read only files that were touched since
        the last call, until `stop_watching`; the first call reads all files. Raises `Temporary` if the object store
        does not respond.
        """

    async def restore_home(
        self,
        organisation: str,
        session_id: str,
        home: Path,
        owner: tuple[int, int],
        files: SessionFiles,
        *,
        deadline: float,
    ) -> None:
        """Restore the session's HOME if it does not continue from the state that the log records. No process of the
        session may run meanwhile. `deadline`: as for `check_out`.
        """

    async def store_home(
        self, home: "SessionTree", last: StoredSnapshot | None, *, is_final: bool
    ) -> StoredSnapshot | None:
        """Take a snapshot of HOME and upload it, as `store_snapshot` does. Returns `last` if HOME is too large.
        `is_final`: no process of the session is running.
        """

    async def stop_watching(self, tree: "SessionTree", *, merge_packs: bool = True) -> None:
        """Stop watching the tree at the end of a turn. `merge_packs`: also merge its packs on this host."""

    def consolidate_packs_later(self, tree: "SessionTree", files: SessionFiles) -> None:
        """Merge packs of the tree in the object store in the background, if there are many. `files`: as in the log."""

    async def collect_commits(
        self, tree: "SessionTree", environment: Environment, inside_path: str, last: StoredSnapshot | None
    ) -> CollectedCommits:
        """Collect the agent's own commits, through a git bundle that is created inside the environment.

        `inside_path`: the path of the tree inside. Raises `Permanent` if the commits cannot be collected.
        """

    async def merge_child(
        self, tree: "SessionTree", ours: StoredSnapshot | None, child: ChildFiles, *, replaces: bool
    ) -> TreeMerge:
        """Compute the patch that adds the changes of a child to the tree. `ours`: the newest snapshot of the tree.
        `replaces`: the tree gets the files of the child. Raises `Permanent` if the patch is too large.
        """

    async def load_instructions(self, organisation: str, project: SessionProject) -> ProjectInstructions:
        """Load the project's instructions from its base commit, as far as it is trusted. The working tree is not read,
        because agents write to it.
        """


class OutputCollector(Protocol):
    """Stores the outputs of one turn. The caller never calls two methods at once."""

    async def collect(self, *, is_final: bool) -> OutputChanges | None:
        """Store new and changed files, and return what to append to the log. None: nothing has changed.

        `is_final`: all processes of the turn are dead. Raises `Temporary` if the object store does not respond.
        """

    def refuse_added(self, reason: str) -> OutputChanges:
        """Return the last changes without the added files, because the log has refused them."""

    async def mark_committed(self) -> None:
        """Note that the last changes are in the log."""


class OutputDirectories(Protocol):
    async def restore(self, organisation: str, session_id: str, directory: Path, outputs: SessionOutputs) -> None:
        """Give a session's output directory the content that the log records. No process of the session may run."""

    def open_collector(
        self, organisation: str, session_id: str, directory: Path, outputs: SessionOutputs
    ) -> OutputCollector: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """What the environment of a turn is opened with."""

    organisation: str
    session_id: str
    deadline: float
    variables: Mapping[str, str]
    """Set for every command."""
    config: EnvironmentConfig
    models: ModelGrant | None = None
    """The endpoints that can be reached from inside even without a network. None: there are none."""
    projects: Sequence[SessionProject] = ()
    """The first one is the working directory."""
    files: SessionFiles = NO_FILES
    """The state to which the session's trees are restored."""


class Environments(Protocol):
    async def open_environment(self, request: OpenRequest) -> OpenEnvironment:
        """Open the environment of a turn. Raises `InvalidRequest` for a configuration that cannot be enforced."""


class Waker(Protocol):
    async def wake(
        self, organisation: str, session_id: str, *, ends_when_idle: bool = False, priority: int | None = None
    ) -> None:
        """Wake the session's workflow. `ends_when_idle`: no further turn is expected soon, so a workflow that is
        started by this call does not wait for one.
        """

    async def wake_overdue(self, organisation: str, session_id: str, *, priority: int | None = None) -> bool:
        """Wake a session whose turn is overdue. A workflow that does nothing is replaced. Returns False if the turn
        only waits for a worker.
        """

    async def end_wait(self, organisation: str, session_id: str) -> None:
        """Start the next attempt of a turn that waits for it, so that it obeys an interrupt now."""

    async def prepare(self, organisation: str, session_id: str) -> None:
        """Announce that the session's first input may come soon. This is only an optimisation."""
