"""A turn's files: looked at where they may have changed, and in the object store before the log speaks of them.

That is with an input that brought files, before a turn's first call, with the result of each call that may have
written, and when the turn is over and all that it started is dead. A tree in which nothing changed costs a
look, and leaves no trace.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

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


@dataclass(slots=True)
class _Course:
    """What a turn has done so far, as far as its files go. Pure."""

    first: bool
    """No attempt was before it, and it is not at its end."""
    touched: bool
    """There was a call, or a file came with an input."""
    wrote: bool
    """There was a call that may have written."""
    called: bool = False
    """By this attempt: until then all that is written came with the input, however many appends it takes."""
    given: bool = False
    """A file has come with an input, and the log does not tell of it yet."""
    looked: bool = False
    reads: set[str] = field(default_factory=set)
    """Calls that write nothing."""

    @classmethod
    def of(cls, claim: Claim) -> Self:
        """An attempt that was lost may have called and written whatever this one does."""
        return cls(first=claim.attempt == 1, touched=claim.attempt > 1, wrote=claim.attempt > 1)

    @property
    def begins(self) -> bool:
        """What is found now is what the turn begins with."""
        return self.first and not (self.called and self.looked)

    def takes(self, events: Sequence[Event]) -> tuple[bool, bool, bool]:
        """Whether a first call is among them, a file came with them, and a result is among them of what may write."""
        uses = [event for event in events if event.type in TOOL_USES]
        self.reads |= {event.id for event in uses if not may_have_written(event)}
        self.wrote = self.wrote or any(event.id not in self.reads for event in uses)
        self.called = self.called or bool(uses)
        given, self.given = self.given, False
        self.touched = self.touched or self.called or given
        return self.begins and bool(uses), given, any(map(self._wrote, events))

    def _wrote(self, event: Event) -> bool:
        """What is told of by its result."""
        call_id = event.body.get("tool_use_id") or event.body.get("mcp_tool_use_id")
        return event.type in TOOL_RESULTS and call_id not in self.reads


class TurnFiles:
    def __init__(
        self, trees: Trees | None, claim: Claim, environment: OpenEnvironment, *, each_call: bool = True
    ) -> None:
        """`each_call`: else only where a turn begins and where it ends."""
        self._trees = trees
        self._each_call = each_call
        self._environment = environment
        self._claim = claim
        self._last: dict[str, KeptSnapshot] = {**claim.files.kept}
        self._course = _Course.of(claim)
        self._collected: dict[str, Collected] = {}
        """The agent's own commits, at the end."""
        self.lock = asyncio.Lock()
        """One append with files at a time: each goes on from the last."""

    @property
    def _kept(self) -> dict[str, KeptTree]:
        """The trees to snapshot, by name. Empty until the environment is open."""
        projects = {project.id: project for project in self._claim.config.projects}
        return {
            name: KeptTree(
                organisation=self._claim.organisation,
                session_id=self._claim.session_id,
                project=projects.get(name),
                files=files,
                beside=number > 0,
            )
            for number, (name, files) in enumerate(self._environment.trees.items())
            if self._trees is not None
        }

    def concerned(self, events: Sequence[Event]) -> bool:
        """Whether the files have to be looked at before these events are in the log."""
        begins, given, results = self._course.takes(events)
        return begins or given or (self._each_call and results)

    def given(self) -> None:
        """The turn itself has written a file of its input: what tells of it comes into the log with the file."""
        self._course.given = True

    async def look(self, *, full_scan: bool = False) -> list[TreeSnapshot]:
        """Returns snapshots of the trees that changed. The caller holds the lock. `full_scan`: read every file."""
        begins, self._course.looked = self._course.begins, True
        if not full_scan:  # the full scan at the end of a turn runs after the environment is closed
            await self._environment.ensure_open()
        found = []
        for name, tree in self._kept.items():
            incremental = self._each_call and not full_scan
            kept = await self._keep(tree, self._last.get(name), self._collected.get(name), incremental=incremental)
            if kept is not None and kept != self._last.get(name):
                found.append(TreeSnapshot(name, kept, begins))
        return found

    async def upload_ahead(self) -> None:
        """Uploads the files that a call wrote before its result is committed, so that `look` has less to do then."""
        if self._trees is None or not self._each_call:
            return
        async with self.lock:
            for name, tree in self._kept.items():
                await self._trees.keep(tree, self._last.get(name), self._collected.get(name), incremental=True)

    def committed(self, found: Sequence[TreeSnapshot]) -> None:
        self._last |= {snapshot.tree: snapshot.kept for snapshot in found}

    async def collect(self, *, within: float | None = None) -> None:
        """The commits that the agent made, by a program inside: while the turn's environment is still open. What cannot
        be had of them, or not in so many seconds, is told to the operator; the files are kept all the same.
        """
        if self._trees is None or not self._course.wrote:
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

    @property
    def may_have_changed(self) -> bool:
        """Where nothing was ever started, and no tool called, nothing can have changed."""
        return self._course.touched or self._environment.used

    async def at_the_end(self) -> list[TreeSnapshot]:
        if not self.may_have_changed:
            return []
        self._course.first = False
        async with self.lock:
            return await self.look(full_scan=True)

    async def close(self, *, merge_packs: bool = True) -> None:
        if self._trees is not None:
            stops = [self._trees.stop_watching(tree, merge_packs=merge_packs) for tree in self._kept.values()]
            await asyncio.gather(*stops)

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

    async def _keep(
        self, tree: KeptTree, last: KeptSnapshot | None, collected: Collected | None, *, incremental: bool
    ) -> KeptSnapshot | None:
        assert self._trees is not None
        async for attempt in stamina.retry_context(on=Unavailable, timeout=_PATIENCE, attempts=None, wait_max=1.0):
            with attempt:
                return await self._trees.keep(tree, last, collected, incremental=incremental)
        raise AssertionError  # the loop above returns or raises
