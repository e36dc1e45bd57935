"""What the engine asks of the store, the live stream and the environments while a turn runs, as ports."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from footplate.domain.agents import ResolvedConfig
from footplate.domain.audit import AuditEntry
from footplate.domain.brought import Brought
from footplate.domain.environments import EnvironmentConfig
from footplate.domain.events import Event, Position, PreviewType, Usage
from footplate.domain.json import JsonObject
from footplate.domain.networks import Network
from footplate.domain.permissions import Layer
from footplate.domain.ports import Endpoint, Entry, Environment, Gate, Preview, Printed, SteerMessage
from footplate.domain.projects import Base, SessionProject
from footplate.domain.snapshots import NO_FILES, Collected, Files, KeptSnapshot, TreeSnapshot
from footplate.domain.turns import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A turn that this worker holds."""

    organisation: str
    session_id: str
    epoch: int
    turn_id: str
    attempt: int
    failures: int
    """How many of the earlier attempts failed for a while."""
    first_seq: int
    control_seq: int
    """The last control input (interrupt, steering) at the time of the claim."""
    controls_seq: int
    """Control inputs from this position on are the turn's."""
    config: ResolvedConfig
    content: Sequence[JsonObject]
    """The content blocks of the input; in a fork, behind those of messages that nobody told the model yet."""
    context: JsonObject
    entries: int
    """How many entries the conversation has."""
    old_holder: str | None = None
    old_holder_lives: bool = False
    """The last holder's lease has not run out: its commands may still be alive."""
    positions: Sequence[Position] = ()
    """Appended by the claim; to be published."""
    waited: float | None = None
    """Seconds from the acceptance of the input to this claim; None when the turn had begun before."""
    trace: str | None = None
    """The W3C `traceparent` of the request that sent the input, if it was traced."""
    carried: Sequence[int] = ()
    """Of a fork: positions of the messages whose content comes first."""
    handed_over: int = 0
    """How many of them followed no loss: a stopping worker passed the turn on, or it waited for the client."""
    seconds_left: float | None = None
    """Until the turn's time is over; None: it has no limit."""
    superseded: str | None = None
    """The harness of a waiting turn that this claim ended, because a new message came instead of the answers."""
    files: Files = NO_FILES
    """As the log has them."""
    resources: Sequence[JsonObject] = ()
    """Of the session, as the api tells them: files that have to be in its tree."""
    forked_at: datetime | None = None
    """Of a fork: resources from before are its parent's."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """There was nothing to do."""

    positions: Sequence[Position] = ()


@dataclass(frozen=True, slots=True)
class HeadState:
    session_id: str
    epoch: int
    control_seq: int


class ClaimStore(Protocol):
    async def claim(self, organisation: str, session_id: str, worker: str) -> Claim | Nothing: ...
    async def outlook(self, organisation: str, session_id: str) -> Claim | None:
        """What the session's next turn will most likely be, without an input, and without claiming anything. None: it
        has begun, or is about to, or there will be none.
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
    ) -> Sequence[Position]: ...
    async def decide_base(self, claim: Claim, project_id: str, base: Base) -> Base: ...
    async def finish(
        self, claim: Claim, outcome: Outcome, files: Sequence[TreeSnapshot] = ()
    ) -> tuple[Sequence[Position], bool]: ...
    async def reschedule(self, claim: Claim, error_type: str, message: str) -> Sequence[Position]: ...
    async def hand_over(self, claim: Claim) -> None: ...
    async def turn_events(self, claim: Claim) -> Sequence[Event]: ...
    async def left(self, claim: Claim) -> Sequence[Event]:
        """Questions and answers of the turn before, if this one took its place while it waited."""

    async def last_completed(self, claim: Claim) -> datetime | None:
        """When the newest of the session's completed turns began."""

    async def entries(self, claim: Claim, after: int) -> list[Entry]: ...
    async def keep(self, claim: Claim, printed: Printed) -> str: ...
    async def take_steering(self, claim: Claim) -> tuple[Sequence[SteerMessage], Sequence[Position]]: ...
    async def answer(self, claim: Claim, event_id: str) -> Event | None:
        """What was said of the call that this event asks about."""

    async def close_ask(self, claim: Claim, event_id: str, reason: str) -> tuple[Event, Sequence[Position]]:
        """The word that stands, and what was appended: a denial, unless somebody was first."""

    async def take_interrupts(self, claim: Claim) -> tuple[bool, Sequence[Position]]: ...


class RuleStore(Protocol):
    async def rules(
        self, organisation: str, session_id: str, *, directory: str | None = None
    ) -> Sequence[tuple[Layer, JsonObject]]:
        """As they are now: the organisation's, those of the session's projects, and its own. The agent's come with the
        turn's configuration. `directory`: one that the session names; rules of projects at that place apply too.
        """


class HookRecords(Protocol):
    async def record(self, organisation: str, session_id: str, turn_id: str, runs: Sequence[AuditEntry]) -> None:
        """Hooks that ran, in the audit trail. They are there when this returns."""


class Gates(Protocol):
    def gate(self, claim: Claim, environment: Environment) -> Gate:
        """For one turn."""


class LeaseStore(Protocol):
    async def renew(
        self, worker: str, host: str, seconds: float, session_ids: Sequence[str]
    ) -> Sequence[HeadState]: ...
    async def end(self, worker: str) -> None: ...


class SweepStore(Protocol):
    async def to_wake(self, *, older_than: float, lost_for: float, limit: int) -> Sequence[tuple[str, str]]: ...
    async def forget(self) -> None: ...


class Chore(Protocol):
    """Something that the sweep has done in the background, a bit at each sweep; it may be killed anywhere."""

    async def run(self) -> None: ...


class LiveTurn(Protocol):
    """The live side of one turn. Nothing here blocks or fails."""

    def preview(self, event_type: PreviewType) -> Preview: ...
    async def publish(self, positions: Sequence[Position]) -> None:
        """Some events wait a moment for the next ones, to be sent with them."""

    def flush(self) -> None:
        """Send what waits: the next event will take a while."""

    async def aclose(self) -> None: ...


class LiveTurns(Protocol):
    def turn(self, organisation: str, session_id: str) -> LiveTurn: ...


class Nudges(Protocol):
    def watch(self, session_id: str, callback: Callable[[], None]) -> AbstractContextManager[None]:
        """Call back when a control input arrived for the session. An accelerator only."""


class OpenEnvironment(Environment, Protocol):
    @property
    def trees(self) -> Mapping[str, Path]:
        """The session's own on this machine, by project or `SCRATCH`. None, where a user named the directory."""

    @property
    def seen(self) -> Mapping[str, str]:
        """Where those of projects are inside."""

    @property
    def used(self) -> bool:
        """Whether anything was started in it."""

    def renew(self, deadline: float) -> None:
        """Commands may live until then (CLOCK_BOOTTIME seconds)."""

    async def aclose(self) -> None:
        """End everything that was started."""


class ModelGrant(Protocol):
    """A turn's leave to ask models, by a token of its own: good while the turn lives and holds its lease."""

    @property
    def endpoints(self) -> Mapping[str, Endpoint]:
        """By provider: the proxy's address, and the turn's token for a key."""

    def renew(self, deadline: float) -> None:
        """As of an environment."""

    def pause(self) -> None:
        """Nothing is asked until it is renewed."""

    async def listen(self, path: Path) -> None:
        """Be reached at a unix socket too, until the end; `path` does not exist yet, its directory does."""

    async def aclose(self) -> None:
        """The token is good no more, and requests that still run are cut."""


class ModelAccess(Protocol):
    def grant(self, *, deadline: float) -> ModelGrant: ...


class EgressDoor(Protocol):
    """A turn's way to the hosts that it may reach."""

    async def listen(self, path: Path) -> None:
        """Be an HTTP proxy at a unix socket; `path` does not exist yet, its directory does."""

    async def aclose(self) -> None:
        """What is connected is cut."""


class Egress(Protocol):
    def door(self, network: Network) -> EgressDoor: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeGround:
    """Where a session's trees go on this machine, and how that is seen by whoever works there."""

    tree: Path
    """Of the first project: the working directory."""
    seen: str
    beside: Path
    """Of the others, by name."""
    beside_seen: str
    objects_seen: str | None
    """Where the objects of mirrors are seen, by project; None: where they are."""
    user: tuple[int, int]
    """Whose the files are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedTree:
    project_id: str
    tree: Path
    seen: str
    objects: Path
    """Of the project's mirror: may be read from inside, and not written."""
    objects_seen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTree:
    """A tree of a session on this machine, for who takes its snapshots."""

    organisation: str
    session_id: str
    project: SessionProject | None
    """None: the scratch tree."""
    files: Path
    beside: bool = False
    """It is not the working directory, but lies beside it."""


class Trees(Protocol):
    async def base(self, organisation: str, project: SessionProject) -> Base:
        """What a session that begins now begins with. Fetches what is new, and makes a repository that is not there.

        Raises `Permanent` for what cannot be had, `Temporary` for what does not answer.
        """

    async def place(
        self, organisation: str, session_id: str, projects: Sequence[SessionProject], ground: TreeGround, files: Files
    ) -> Sequence[PlacedTree]:
        """A tree of each as the log has it, from the object store if need be; one that goes on from there is left as it
        is. Without projects, the same of the scratch tree. Nothing of the session's runs meanwhile.
        """

    async def keep(
        self,
        tree: "KeptTree",
        last: KeptSnapshot | None,
        collected: Collected | None = None,
        *,
        incremental: bool = False,
    ) -> KeptSnapshot | None:
        """A snapshot of the tree, in the object store when this returns; the `last` one, if nothing has changed since.
        With the agent's own commits; `collected` None: as they were. None is returned if it is empty, and always was.
        `incremental`: reads only what was touched since the last call, until `stop_watching`. The first call reads all.
        Raises `Temporary` when the store does not answer.
        """

    async def stop_watching(self, tree: "KeptTree", *, merge_packs: bool = True) -> None:
        """Stops watching the tree at the end of a turn. `merge_packs`: also merges its packs on this host."""

    async def commits(
        self, tree: "KeptTree", environment: Environment, seen: str, last: KeptSnapshot | None
    ) -> Collected:
        """The agent's own commits, taken in as a bundle that is made inside.
        `seen`: where the tree is inside. Raises `Permanent` for what cannot be taken in.
        """

    async def brought(self, organisation: str, project: SessionProject) -> Brought:
        """What its base brings for agents, as far as it is trusted. No tree is looked at: agents write those."""


class Environments(Protocol):
    async def open(
        self,
        organisation: str,
        session_id: str,
        *,
        deadline: float,
        variables: Mapping[str, str],
        config: EnvironmentConfig,
        models: ModelGrant,
        projects: Sequence[SessionProject] = (),
        files: Files = NO_FILES,
    ) -> OpenEnvironment:
        """`variables` are set for every command. `models` can be reached from inside, where there is no network. Of the
        `projects`, the first is the working directory. `files`: what the session's trees are to be like.

        Raises `InvalidRequest` for a configuration that cannot be held to.
        """


class Waker(Protocol):
    async def wake(self, organisation: str, session_id: str, *, ends_when_idle: bool = False) -> None:
        """`ends_when_idle`: no further turn is expected soon, so a workflow that this starts does not wait for one."""

    async def prepare(self, organisation: str, session_id: str) -> None:
        """Its first input may come soon. An accelerator only."""
