"""The ports: what a harness may use, and what an environment must do. Adapters live in the packages beside.

A harness sees a `TurnContext` and nothing else of the product. It decides; it never stores, publishes or
fences by itself: all of that is behind `TurnLog`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, runtime_checkable

from footplate.domain.agents import ResolvedConfig
from footplate.domain.brought import Brought
from footplate.domain.events import Event, PreviewType, Usage
from footplate.domain.hooks import Heard, HookEvent
from footplate.domain.json import JsonObject
from footplate.domain.model_transport import ModelTransport
from footplate.domain.permissions import Decision
from footplate.domain.turns import Outcome


@dataclass(frozen=True, slots=True)
class Entry:
    """One append-only line of a conversation. `kind` and `body` are the harness's own."""

    kind: str
    body: JsonObject


class Preview(Protocol):
    """Text of a message that is still being written. Losing it loses nothing."""

    @property
    def event_id(self) -> str:
        """The id that the finished event will carry."""

    def write(self, text: str) -> None:
        """Never blocks and never fails: nothing live may slow a turn."""


class Printed(Protocol):
    """What a command printed to one stream, when it is more than a result holds. For as long as the turn runs."""

    @property
    def size(self) -> int:
        """Bytes that it printed."""

    def pieces(self) -> Iterator[bytes]:
        """All of it, or beginning and end with a line between them that says so. Blocking."""


class TurnLog(Protocol):
    """The one door through which a running turn writes. Each append is fenced by the turn's epoch."""

    async def append(
        self, events: Sequence[Event] = (), *, entries: Sequence[Entry] = (), usage: Usage | None = None
    ) -> None:
        """Make all of it durable in one transaction, then publish. Raises `Fenced` when the turn is lost.

        A fork at one of these events has these entries, and those of earlier appends: what an event tells of has to
        come with it or before.
        """

    async def upload_files_ahead(self) -> None:
        """Uploads the files that a finished call wrote, so that appending its result takes less time. This is optional:
        if it fails, the append uploads them.
        """

    async def keep(self, printed: Printed) -> str:
        """Put a large output into the object store; what it is called there. It goes with its session."""

    def check(self) -> None:
        """Raises `Fenced` when this worker may have lost the turn. Call it right before an effect outside, such as a
        model request that costs money: a process that was stopped for a while finds out here, for nothing.
        """

    def preview(self, event_type: PreviewType) -> Preview:
        """Open a preview; the finished event is appended later under the preview's id."""


class Answers(Protocol):
    """People's words on calls that a running turn holds, because what made them cannot be put away and go on later."""

    async def wanted(self, use: Event) -> None:
        """Whoever is to hear that a person is asked does, by this event."""

    async def given(self, event_id: str) -> Event | None:
        """What was said of the call that this event asks about."""

    async def close(self, event_id: str, reason: str) -> Event:
        """The word that stands: a person's, if there is one; else a denial for this reason, and later words are refused
        with it. Raises `Fenced`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """O6: what a command did."""

    exit_code: int | None
    """None when it was ended by its timeout or with its shell."""
    stdout: bytes
    stderr: bytes
    duration: float
    timed_out: bool = False
    truncated: bool = False
    error: str = ""
    """Why the environment itself ended it or could not run it, for a person or a model to read."""
    whole: Mapping[str, Printed] = field(default_factory=dict)
    """By `stdout` and `stderr`, those of which the result has beginning and end only."""

    @property
    def status(self) -> Literal["completed", "failed", "timed_out", "ended"]:
        """`ended`: with its shell or its environment, before it had an exit code."""
        if self.timed_out:
            return "timed_out"
        if self.exit_code is None:
            return "ended"
        return "completed" if self.exit_code == 0 else "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    path: str
    """Relative to the directory that was listed, with forward slashes."""
    size: int
    modified: float


class Process(Protocol):
    """A program that runs beside the shell until somebody ends it, or its environment ends."""

    async def write(self, data: bytes) -> None:
        """To its standard input. Raises BrokenPipeError when it takes nothing any more."""

    async def read(self) -> bytes:
        """The next piece of what it prints, as it comes; empty at the end."""

    async def end_input(self) -> None:
        """Nothing more is written to it."""

    async def wait(self) -> int:
        """Its exit code as a shell tells it."""

    async def kill(self) -> None:
        """With all that it started. It is dead when this returns."""

    @property
    def last_words(self) -> str:
        """The end of what it said on its standard error."""


MOST_READ: Final = 16 << 20
"""Bytes of a file that any environment gives in one piece: the worker holds it for everybody's turns."""


class Environment(Protocol):
    """An environment for one turn. Its processes end when the turn ends or loses its lease."""

    async def ensure_open(self) -> None:
        """Opens the environment if it is not open yet (`OpensLate`). Call this before you read the properties below."""

    @property
    def root(self) -> str:
        """The working directory, absolute."""

    @property
    def home(self) -> str:
        """The home of whoever runs commands there, absolute."""

    @property
    def scratch(self) -> str:
        """A directory for what a harness needs inside while its turn runs; it may have to be made, by writing to it.
        Empty when the turn begins, and no later turn finds anything in it.
        """

    def reach(self, endpoint: "Endpoint") -> "Endpoint":
        """The same endpoint of this turn as a program inside gets to it."""

    async def calm(self, *, but: Process) -> None:
        """End all that runs here but one program: whatever a turn's tools left is dead when this returns."""

    async def start(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Process:
        """Start a program in the working directory; `env` is set for it alone, beside what every command has."""

    async def shell(self, command: str, *, timeout: float) -> CommandResult:  # noqa: ASYNC109 - the shell enforces it
        """Run in the turn's persistent shell; a command that times out ends the shell with it."""

    async def restart_shell(self) -> None: ...

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout: float = 60,  # noqa: ASYNC109 - as above
    ) -> CommandResult:
        """Run one program in the working directory, beside the shell."""

    async def read(self, path: str) -> bytes:
        """Raises FileNotFoundError, IsADirectoryError or PermissionError; relative paths start at the root.

        With more than `MOST_READ` it may raise OSError.
        """

    async def write(self, path: str, content: bytes) -> None:
        """Create or replace, parents included."""

    async def list_files(self, path: str = ".") -> Sequence[FileInfo]:
        """All regular files below, recursively; `.git` is left out."""

    async def real(self, paths: Sequence[str]) -> Sequence[str | None]:
        """Where absolute paths really lead, links followed as a program inside would; what does not exist is as it is
        written. None: it cannot be told.
        """

    async def directory(self) -> str | None:
        """Where the shell's next command will run, absolute. None: it cannot be told."""


class Gate(Protocol):
    """The one door in front of every call. It is outside the harness, and what it says is final."""

    async def decide(
        self, tool: str, given: JsonObject, *, directory: str | None = None, agent: str | None = None
    ) -> Decision:
        """Ask before a call is made, and make it only if it is allowed. `tool`: by the reference's name, or
        `mcp__server__tool`. `directory`: where a command will run, if the harness knows better than the environment.
        `agent`: the name of the subagent that makes the call, whose own rules are in force then too.

        Raises `Temporary` when nothing can be said: then nothing is done.
        """

    async def tell(self, event: HookEvent, fields: JsonObject, *, about: str = "", agent: str | None = None) -> Heard:
        """At any other moment: hooks for it are asked, and what they did is in the audit trail. `fields`: what Claude
        Code tells them of it beside what it always tells. `about`: what their matchers are held against.
        """


@dataclass(frozen=True, slots=True)
class SteerMessage:
    """A `user.message` that joins the running turn instead of waiting for the next."""

    event_id: str
    content: Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider's models are reached, and with what.

    One with a provider's own key never leaves the model proxy. What a harness is given leads to the proxy.
    """

    api_key: str = field(repr=False)
    base_url: str | None = None


class Kept(Protocol):
    """What a harness leaves running at the end of a turn, to be quicker at the next one of the same session."""

    @property
    def alive(self) -> bool: ...

    async def aclose(self) -> None:
        """End it. Safe to call again."""


async def _as_they_are(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
    return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    organisation: str
    session_id: str
    turn_id: str
    attempt: int
    """1 for the first try. Above 1 the harness first settles what the last try left open."""
    config: ResolvedConfig
    content: Sequence[JsonObject]
    """The content blocks of the input."""
    history: Sequence[Entry]
    """The whole conversation, oldest first, entries of this turn's earlier tries included."""
    turn_events: Sequence[Event]
    """All events logged since this turn began, inputs included (answers to custom tools among them)."""
    log: TurnLog
    environment: Environment
    gate: Gate
    interrupt: asyncio.Event
    """Set when a person asks the turn to stop. The harness ends as soon as it can, keeping partial text."""
    take_steering: Callable[[], Awaitable[Sequence[SteerMessage]]]
    """Messages that want to join the turn. Call at a safe point; taking marks them as processed."""
    handover: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the worker is told to stop. The harness then raises `HandOver` at its next safe point: after a tool's
    result or a model's response, when all it knows is in the log, and before it begins anything else. One that does not
    is cut off when the worker's time is over."""
    context: JsonObject = field(default_factory=dict)
    """What the caller gave the session and this input for its tools and hooks (F6)."""
    kept: Kept | None = None
    """What this harness kept at the end of the session's last turn, or prepared for this one, in this same environment.
    Nobody has added to the conversation since, and the agent's configuration is the same. Use it or end it."""
    keep: Callable[[Kept], bool] = lambda _: False
    """Ask for it to be kept, and the environment with it, when all else that the turn started is dead. False: it is the
    harness's to end."""
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    """By provider: where this turn asks models, and a token of its own, which is good as long as it runs."""
    resolve: Callable[[Sequence[JsonObject]], Awaitable[Sequence[JsonObject]]] = _as_they_are
    """Blocks of an input as a model is given them: what they name is fetched, and put inside or into a file. Call it
    once for each input, right before the conversation has it. Raises `Permanent`."""
    resolve_steering: Callable[[Sequence[JsonObject]], Awaitable[Sequence[JsonObject]]] = _as_they_are
    """The same for a message that joins the turn. The work that goes on must not fail with it: in the place of a part
    that cannot be had, or is not taken, stands what the model is told of it. Commit what is at hand before: it waits
    for URLs."""
    left: Sequence[Event] = ()
    """What was asked and said about calls of the turn before, if this one came instead of the rest of the answers."""
    answers: Answers | None = None
    """None: nobody can be heard while the turn runs."""
    brought: Brought = field(default_factory=Brought)
    """What the repository brings for its agents, as far as its project is trusted; of the session's base commit."""


class Harness(Protocol):
    """Decides the next action. Stateless: one instance serves many turns, each rebuilt from the log."""

    async def run(self, turn: TurnContext) -> Outcome:
        """Work until the turn ends. Raise `Temporary` to be tried again, `Permanent` to fail, `HandOver` when asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What is known of a session's next turn before it begins. As in a `TurnContext`, but no model may be asked yet."""

    session_id: str
    config: ResolvedConfig
    history: Sequence[Entry]
    environment: Environment
    endpoints: Mapping[str, Endpoint]


@runtime_checkable
class Prepares(Protocol):
    """What a harness may have beside `run`."""

    async def prepare(self, ahead: Ahead) -> Kept | None:
        """Begin with what the next turn needs, whatever its input is. That turn finds it as `kept`, if it comes here
        and soon, and if nothing changed. None: there is nothing to prepare.
        """


@runtime_checkable
class OpensLate(Protocol):
    """A harness that needs no environment until a tool is called: the environment is opened at its first use."""

    opens_late: Literal[True]


@dataclass(frozen=True, slots=True)
class SearchProvider:
    """Who answers `web_search`. Never enters an environment, an event or a prompt."""

    name: str
    """`searxng` or `brave`."""
    url: str = field(repr=False)
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAccess:
    """How far the tools of an agent may reach into the web, from the worker itself."""

    allow: tuple[str, ...] = ()
    """Hosts, addresses and networks that may be reached although they are internal."""
    max_bytes: int = 5_000_000
    max_seconds: float = 30.0
    search: SearchProvider | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAccess:
    """How far the MCP servers of agents may be away, from the worker itself."""

    allow: tuple[str, ...] = ()
    """Hosts, addresses and networks that may be reached although they are internal."""
    connect_seconds: float = 10.0
    """For all that comes before a server's first call: its tools included."""
    call_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class HarnessServices:
    """What a harness factory (entry point group `footplate.harnesses`) is given."""

    endpoints: Mapping[str, Endpoint]
    """By provider (`anthropic`, `openai`, …): where clients that are made once connect to. The key that counts comes
    with each turn (`TurnContext.endpoints`)."""
    web: WebAccess = field(default_factory=WebAccess)
    starts: int = 1
    """How many programs of its own a harness may be starting at once."""
    mcp: McpAccess = field(default_factory=McpAccess)
    hold: float = 0.0
    """Seconds for which a call waits for a person inside a turn that cannot be put away meanwhile. 0: not at all."""
    model_transport: ModelTransport | None = None
    """The model proxy for harnesses in this process. None: they connect to the endpoints."""


HarnessFactory = Callable[[HarnessServices], Harness]
