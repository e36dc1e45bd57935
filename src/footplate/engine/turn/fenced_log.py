"""Implements `TurnLog`: stores the events of a turn durably, and then publishes them.

Each write carries the epoch, the number of the worker's claim on the turn. A worker that lost the turn has an old
epoch, and its writes are rejected. The files that a tool call wrote are uploaded to the object store before the call's
result is stored.
"""

from collections.abc import Sequence

from footplate import failpoints
from footplate.domain.files.session_outputs import OutputChanges
from footplate.domain.files.snapshots import TreeSnapshot
from footplate.domain.ports.engine import LiveTurn, OpenEnvironment, TurnStore
from footplate.domain.ports.harness import Entry, FullOutput, Preview
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event, PreviewType, Usage
from footplate.domain.sessions.shell_state import ShellState
from footplate.domain.sessions.turns import Mode
from footplate.engine.conversation_cache import ConversationCache
from footplate.engine.turn.file_snapshots import TurnFiles
from footplate.engine.turn.telemetry import TurnTelemetry
from footplate.engine.turn.timeout import DiscardedPreview
from footplate.engine.worker_lease import HeldTurn
from footplate.telemetry import traces


class FencedLog:
    def __init__(
        self,
        turns: TurnStore,
        conversations: ConversationCache,
        held_turn: HeldTurn,
        live: LiveTurn,
        telemetry: TurnTelemetry,
    ) -> None:
        self._turns = turns
        self._conversations = conversations
        self._held_turn = held_turn
        self._claim = held_turn.claim
        self._live = live
        self._telemetry = telemetry
        self.entry_count = held_turn.claim.entries
        """Number of entries in the conversation."""
        self.files: TurnFiles | None = None
        """Set when the turn has an environment."""
        self.environment: OpenEnvironment | None = None
        """Set like `files`."""
        self._recorded_shell = held_turn.claim.shell
        self.approval_tools: dict[str, str] = {}
        """Tool names of the calls for which this attempt requested approval, by event id."""

    def check(self) -> None:
        self._held_turn.check()

    async def append(
        self, events: Sequence[Event] = (), *, entries: Sequence[Entry] = (), usage: Usage | None = None
    ) -> None:
        if self.files is None or not self.files.needs_snapshot(events):
            await self._append(events, entries, usage)
            return
        async with self.files.lock:
            snapshots = await self.files.take_snapshots()
            outputs = await self.files.collect_outputs()
            await failpoints.hit("files_kept")
            await self.files.commit_outputs(
                lambda changes: self._append(events, entries, usage, snapshots, changes), outputs
            )
            self.files.mark_committed(snapshots)

    async def store_files(self) -> None:
        """Store the files as they are now, between two events, because a person may work for hours in one call."""
        if self.files is None:
            return
        async with self.files.lock:
            snapshots, outputs = await self.files.take_snapshots(), await self.files.collect_outputs()
            if snapshots or outputs is not None:
                await self.files.commit_outputs(lambda changes: self._append((), (), None, snapshots, changes), outputs)
                self.files.mark_committed(snapshots)

    async def _append(
        self,
        events: Sequence[Event],
        entries: Sequence[Entry],
        usage: Usage | None,
        files: Sequence[TreeSnapshot] = (),
        outputs: OutputChanges | None = None,
    ) -> None:
        at = traces.now_ns()
        shell = self._find_changed_shell(events)
        positions = await self._turns.append(
            self._claim, events, entries=entries, usage=usage, files=files, outputs=outputs, shell=shell
        )
        self._recorded_shell = shell or self._recorded_shell
        self._telemetry.record_events(events, usage, at=at)
        self.entry_count += len(entries)
        self.approval_tools |= {event.id: str(event.body.get("name")) for event in events if ev.needs_approval(event)}
        self._conversations.add(self._claim, entries)
        await failpoints.hit("before_publish")
        await self._live.publish(positions)

    def _find_changed_shell(self, events: Sequence[Event]) -> ShellState | None:
        """Return the state of the persistent shell if these events have the result of a call and it has changed."""
        if self.environment is None or not any(event.type in ev.TOOL_RESULTS for event in events):
            return None
        state = self.environment.shell_state
        return None if state == self._recorded_shell else state

    async def upload_files_ahead(self) -> None:
        if self.files is not None:
            await self.files.upload_ahead()

    async def store_output(self, output: FullOutput, *, name: str | None = None) -> str:
        return await self._turns.store_output(self._claim, output, name=name)

    def preview(self, event_type: PreviewType) -> Preview:
        self._telemetry.record_first_token()
        if self._claim.config.mode == Mode.BACKGROUND:
            return DiscardedPreview()
        return self._live.preview(event_type)
