"""A turn's files: looked at where they may have changed, and in the object store before the log speaks of them.

That is with an input that brought files, before a turn's first call, with the result of each call that may have
written, and when the turn is over and all that it started is dead. A tree in which nothing changed costs a
look, and leaves no trace.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import stamina
import structlog

from footplate.domain.errors import FootplateError, Unavailable
from footplate.domain.events import TOOL_RESULTS, TOOL_USES, Event
from footplate.domain.running import Claim, KeptTree, OpenEnvironment, Trees, TurnStore
from footplate.domain.snapshots import Collected, KeptSnapshot, TreeSnapshot, may_have_written

log = structlog.get_logger(__name__)

_PATIENCE: Final = 30.0
"""Seconds for an object store that does not answer: a call's result is worth the wait."""

SOON: Final = 5.0
"""Seconds, of a stopping worker's or a failed turn's."""


class TurnFiles:
    def __init__(
        self, trees: Trees | None, claim: Claim, environment: OpenEnvironment, *, each_call: bool = True
    ) -> None:
        """`each_call`: else only where a turn begins and where it ends."""
        self._trees = trees
        self._each_call = each_call
        self._environment = environment
        projects = {project.id: project for project in claim.config.projects}
        self._kept = {
            name: KeptTree(
                organisation=claim.organisation,
                session_id=claim.session_id,
                project=projects.get(name),
                files=files,
                beside=number > 0,
            )
            for number, (name, files) in enumerate(environment.trees.items())
            if trees is not None
        }
        self._last: dict[str, KeptSnapshot] = {**claim.files.kept}
        self._begins = claim.attempt == 1
        # An attempt that was lost may have called and written whatever this one does.
        self._called = claim.attempt > 1
        self._wrote = claim.attempt > 1
        self._collected: dict[str, Collected] = {}
        """The agent's own commits, at the end."""
        self._given = False
        self._looked = False
        self._uses = False
        """A call was made: until then all that is written came with the input, however many appends it takes."""
        self._reads: set[str] = set()
        """Calls that write nothing."""
        self.lock = asyncio.Lock()
        """One append with files at a time: each goes on from the last."""

    def concerned(self, events: Sequence[Event]) -> bool:
        """Whether the files have to be looked at before these events are in the log."""
        uses = [event for event in events if event.type in TOOL_USES]
        self._reads |= {event.id for event in uses if not may_have_written(event)}
        self._wrote = self._wrote or any(event.id not in self._reads for event in uses)
        self._uses = self._uses or bool(uses)
        self._begins = self._begins and not (uses and self._looked)
        begins = self._begins and bool(uses)
        self._called = self._called or bool(uses) or self._given
        given, self._given = self._given, False
        return begins or given or (self._each_call and any(map(self._may_have_written, events)))

    def given(self) -> None:
        """The turn itself has written a file of its input: what tells of it comes into the log with the file."""
        self._given = True

    async def look(self) -> list[TreeSnapshot]:
        """What changed since the last time. Under the lock."""
        begins, self._begins, self._looked = self._begins, self._begins and not self._uses, True
        found = []
        for name, tree in self._kept.items():
            kept = await self._keep(tree, self._last.get(name), self._collected.get(name))
            if kept is not None and kept != self._last.get(name):
                found.append(TreeSnapshot(name, kept, begins))
        return found

    def committed(self, found: Sequence[TreeSnapshot]) -> None:
        self._last |= {snapshot.tree: snapshot.kept for snapshot in found}

    async def collect(self, *, within: float | None = None) -> None:
        """The commits that the agent made, by a program inside: while the turn's environment is still open. What cannot
        be had of them, or not in so many seconds, is told to the operator; the files are kept all the same.
        """
        if self._trees is None or not self._wrote:
            return
        for name, seen in self._environment.seen.items():
            try:
                async with asyncio.timeout(within):
                    self._collected[name] = await self._trees.commits(
                        self._kept[name], self._environment, seen, self._last.get(name)
                    )
            except (FootplateError, TimeoutError) as error:
                reason = str(error) or "It took too long."
                log.warning("commits not collected", action="turn.no_commits", tree=name, reason=reason)
            except Exception:  # the turn has done its work, and is not done again for this
                log.exception("commits not collected", action="turn.no_commits", tree=name)

    async def at_the_end(self) -> list[TreeSnapshot]:
        """Where nothing was ever started, and no tool called, nothing can have changed."""
        if not self._called and not self._environment.used:
            return []
        self._begins = False
        async with self.lock:
            return await self.look()

    async def rescue(self, turns: TurnStore, claim: Claim) -> None:
        """What changed since the last result, for a turn that is handed over or fails, if it can be had soon. Else its
        files are those of its last result; the turn ends as it would have ended.
        """
        try:
            async with asyncio.timeout(SOON):
                if found := await self.at_the_end():
                    await turns.append(claim, (), files=found)
                    self.committed(found)
        except Exception as error:  # noqa: BLE001 - whatever it is, the turn's own end is worth more
            log.warning("files not kept", action="turn.files_not_kept", reason=str(error) or type(error).__name__)

    def _may_have_written(self, event: Event) -> bool:
        """What is told of by its result."""
        call_id = event.body.get("tool_use_id") or event.body.get("mcp_tool_use_id")
        return event.type in TOOL_RESULTS and call_id not in self._reads

    async def _keep(
        self, tree: KeptTree, last: KeptSnapshot | None, collected: Collected | None
    ) -> KeptSnapshot | None:
        assert self._trees is not None
        async for attempt in stamina.retry_context(on=Unavailable, timeout=_PATIENCE, attempts=None, wait_max=1.0):
            with attempt:
                return await self._trees.keep(tree, last, collected)
        raise AssertionError  # the loop above returns or raises
