"""Implements `TurnLog`: appends are fenced by the claim's epoch, stored durably, and then published.

The files that a call wrote are uploaded to the object store before the call's result is appended, for every harness.
"""

from collections.abc import Sequence

from footplate import failpoints
from footplate.domain import events as ev
from footplate.domain.events import Event, PreviewType, Usage
from footplate.domain.ports import Entry, Preview, Printed
from footplate.domain.running import LiveTurn, TurnStore
from footplate.domain.snapshots import TreeSnapshot
from footplate.domain.turns import Mode
from footplate.engine.clock import Unseen
from footplate.engine.conversations import Conversations
from footplate.engine.files import TurnFiles
from footplate.engine.leases import HeldTurn
from footplate.engine.observed import TurnWatch
from footplate.telemetry import traces


class FencedLog:
    def __init__(
        self, turns: TurnStore, conversations: Conversations, held: HeldTurn, live: LiveTurn, watch: TurnWatch
    ) -> None:
        self._turns = turns
        self._conversations = conversations
        self._held = held
        self._claim = held.claim
        self._live = live
        self._watch = watch
        self.entries = held.claim.entries
        """Number of entries in the conversation."""
        self.files: TurnFiles | None = None
        """Set when the turn has an environment."""
        self.asked: dict[str, str] = {}
        """Tool names of the calls for which this attempt requested approval, by event id."""

    def check(self) -> None:
        self._held.check()

    async def append(
        self, events: Sequence[Event] = (), *, entries: Sequence[Entry] = (), usage: Usage | None = None
    ) -> None:
        if self.files is None or not self.files.concerned(events):
            await self._append(events, entries, usage)
            return
        async with self.files.lock:
            found = await self.files.look()
            await failpoints.hit("files_kept")
            await self._append(events, entries, usage, found)
            self.files.committed(found)

    async def _append(
        self,
        events: Sequence[Event],
        entries: Sequence[Entry],
        usage: Usage | None,
        files: Sequence[TreeSnapshot] = (),
    ) -> None:
        at = traces.now()
        positions = await self._turns.append(self._claim, events, entries=entries, usage=usage, files=files)
        self._watch.committed(events, usage, at=at)
        self.entries += len(entries)
        self.asked |= {event.id: str(event.body.get("name")) for event in events if ev.asks(event)}
        self._conversations.add(self._claim, entries)
        await failpoints.hit("before_publish")
        await self._live.publish(positions)

    async def upload_files_ahead(self) -> None:
        if self.files is not None:
            await self.files.upload_ahead()

    async def keep(self, printed: Printed) -> str:
        return await self._turns.keep(self._claim, printed)

    def preview(self, event_type: PreviewType) -> Preview:
        self._watch.first_token()
        if self._claim.config.mode == Mode.BACKGROUND:
            return Unseen()
        return self._live.preview(event_type)
