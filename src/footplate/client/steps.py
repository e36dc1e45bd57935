"""Client methods and models for the queue of a session: steps, playing and pausing, and the terminal of the session."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import ResponseModel
from footplate.client.transport import Transport

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

StepKind = Literal["prompt", "shell", "external", "parallel", "merge", "push", "terminal"]
StepState = Literal["pending", "running", "completed", "failed", "skipped", "cancelled"]


class StepResult(ResponseModel):
    """What a step did. Later steps can refer to each field."""

    status: str
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    duration_ms: int | None = None
    error_message: str | None = None
    text: str = ""
    """The agent's last message, or the output of a command."""
    sessions: list[dict[str, Any]] | None = None
    """The sessions of a parallel step, each with its `outcome`, `text` and `error`."""


class Step(ResponseModel):
    """A step has `content`, `command`, `instructions`, `sessions`, or `into` or `branch`, according to its kind."""

    id: str
    session_id: str
    kind: StepKind
    name: str | None = None
    state: StepState
    waiting_for: Literal["action", "sessions", "retry"] | None = None
    """`action`: an approval, or the result of an external step. `sessions`: those that a parallel step has started.
    `retry`: the time of the next attempt."""
    sort_key: int
    content: list[dict[str, Any]] | None = None
    command: str | None = None
    terminal: bool = False
    """Whether the command runs on the session's terminal."""
    instructions: str | None = None
    sessions: list[dict[str, Any]] | None = None
    into: str | None = None
    """The branch of a merge. None: the one that the session started from."""
    branch: str | None = None
    """The branch of a push. None: one that is named after the session."""
    message: str | None = None
    project_id: str | None = None
    condition: str | None = None
    on_failure: Literal["stop", "continue", "retry"] = "stop"
    max_attempts: int = 1
    timeout_seconds: float | None = None
    ends_session: bool = False
    """Whether the session ends with this step."""
    retry_of: str | None = None
    """The id of the step that it repeats."""
    is_message: bool = False
    """Whether it was sent as an event. It can then not be edited, and its content is in the event."""
    attempt: int = 0
    turn_id: str | None = None
    result: StepResult | None = None
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


class Playback(ResponseModel):
    """Whether a session starts its steps by itself."""

    session_id: str
    playing: bool
    next_steps: int = 0
    """How many steps a paused session may still start."""
    pause_reason: Literal["requested", "step_failed", "group"] | None = None
    """`group`: it starts when another session of its group has ended."""


class Steps:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def add(
        self, session_id: str, steps: Sequence[Mapping[str, Any]], *, before: str | None = None
    ) -> Sequence[Step]:
        """Adds all steps or none, at the end of the queue or before a pending step.

        A step is `{"kind": "shell", "command": …}`, `{"kind": "prompt", "content": …}`, `{"kind": "external",
        "instructions": …}`, `{"kind": "parallel", "sessions": [{"prompt": …}, {"shell": …}]}`, `{"kind": "merge",
        "into": …}` or `{"kind": "push", "branch": …}`, with `name`, `condition`, `on_failure`, `max_attempts`,
        `timeout_seconds` and `ends_session` if needed.
        """
        body = {"steps": [dict(step) for step in steps], **drop_none(before=before)}
        response = await self._transport.post(f"/v1/sessions/{session_id}/steps", body)
        return [Step.model_validate(item) for item in response["data"]]

    def list(self, session_id: str, *, limit: int | None = None, states: Sequence[StepState] = ()) -> Pages[Step]:
        """Lists steps in the order of the queue. Messages that were sent as events are steps too."""
        params = {"limit": limit, "states[]": [*states] or None}
        return Pages(self._transport, f"/v1/sessions/{session_id}/steps", Step, params)

    async def retrieve(self, session_id: str, step_id: str) -> Step:
        return Step.model_validate(await self._transport.get(f"/v1/sessions/{session_id}/steps/{step_id}"))

    async def edit(self, session_id: str, step_id: str, **fields: Any) -> Step:
        """Changes a pending step. A field that is None is cleared."""
        return Step.model_validate(await self._transport.post(f"/v1/sessions/{session_id}/steps/{step_id}", fields))

    async def move(self, session_id: str, step_id: str, *, before: str | None) -> Step:
        """Moves a pending step before another pending step, or to the end of the queue with None."""
        path = f"/v1/sessions/{session_id}/steps/{step_id}/move"
        return Step.model_validate(await self._transport.post(path, {"before": before}))

    async def remove(self, session_id: str, step_id: str) -> Step:
        """Removes a pending step. Its state is then `cancelled`."""
        return Step.model_validate(await self._transport.delete(f"/v1/sessions/{session_id}/steps/{step_id}"))

    async def retry(self, session_id: str, step_id: str, *, play: bool = False) -> Step:
        """Repeats a failed or cancelled step with a copy at the front of the queue, and returns the copy. `play`: also
        lets a paused session run its steps. Each step is repeated once.
        """
        path = f"/v1/sessions/{session_id}/steps/{step_id}/retry"
        return Step.model_validate(await self._transport.post(path, {"play": play}))

    async def submit_result(
        self, session_id: str, step_id: str, *, status: Literal["completed", "failed", "timed_out"], **fields: Any
    ) -> Step:
        """Submits the result of an external step: also `stdout`, `stderr`, `exit_code`, `duration_ms` and
        `error_message`. It is accepted once; submitting the same result again changes nothing.
        """
        path = f"/v1/sessions/{session_id}/steps/{step_id}/result"
        return Step.model_validate(await self._transport.post(path, drop_none(status=status, **fields)))

    async def playback(self, session_id: str) -> Playback:
        return Playback.model_validate(await self._transport.get(f"/v1/sessions/{session_id}/playback"))

    async def play(self, session_id: str) -> Playback:
        """Lets the session run its steps one after the other."""
        return await self._change_playback(session_id, "play")

    async def pause(self, session_id: str) -> Playback:
        """Lets the current step finish, and starts no other."""
        return await self._change_playback(session_id, "pause")

    async def next(self, session_id: str) -> Playback:
        """Runs one step of a paused session."""
        return await self._change_playback(session_id, "next")

    async def _change_playback(self, session_id: str, action: Literal["play", "pause", "next"]) -> Playback:
        return Playback.model_validate(await self._transport.post(f"/v1/sessions/{session_id}/{action}"))


class TerminalConnection:
    """A connection to a session's terminal. Iterate over it: bytes are output, and other messages are dictionaries with
    a `type`: `attached`, `opened`, `resized`, `closed` or `error`. It ends when the connection ends.
    """

    def __init__(self, socket: "ClientConnection") -> None:
        self._socket = socket

    async def __aiter__(self) -> AsyncIterator[bytes | dict[str, Any]]:
        async for message in self._socket:
            yield message if isinstance(message, bytes) else json.loads(message)

    @property
    def close_code(self) -> int | None:
        """Why the server closed the connection. None: it is open."""
        return self._socket.close_code

    async def type_keys(self, keys: bytes) -> None:
        """Types keys into the program on the terminal. Has no effect while the terminal is not open."""
        await self._socket.send(keys)

    async def resize(self, columns: int, rows: int) -> None:
        await self._socket.send(json.dumps({"type": "resize", "columns": columns, "rows": rows}))


class TerminalRecording(ResponseModel):
    """What a shell on a session's terminal showed, until it was closed."""

    id: str
    """The id of the shell's call in the log."""
    session_id: str
    size_bytes: int
    created_at: datetime


class Terminals:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def open(self, session_id: str) -> Step:
        """Opens a shell for a person on the session's terminal, as a step at the front of the queue. Returns the step
        that is already pending or running, if there is one.
        """
        return Step.model_validate(await self._transport.post(f"/v1/sessions/{session_id}/terminal"))

    @asynccontextmanager
    async def attach(self, session_id: str, *, write: bool = False) -> AsyncIterator[TerminalConnection]:
        """Connects to the session's terminal, first with the output so far. `write`: also to type."""
        path = f"/v1/sessions/{session_id}/terminal/ws{'?write=true' if write else ''}"
        async with self._transport.open_websocket(path) as socket:
            yield TerminalConnection(socket)

    async def recordings(self, session_id: str) -> Sequence[TerminalRecording]:
        """Lists the recordings of the session's shells, oldest first."""
        found = await self._transport.get(f"/v1/sessions/{session_id}/terminal/recordings")
        return [TerminalRecording.model_validate(item) for item in found["data"]]

    def recording(self, session_id: str, recording_id: str) -> AsyncIterator[bytes]:
        """Yields a recording in asciicast format, in chunks."""
        return self._transport.stream_bytes(f"/v1/sessions/{session_id}/terminal/recordings/{recording_id}")
