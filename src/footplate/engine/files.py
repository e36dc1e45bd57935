"""Takes snapshots of a turn's files, and uploads them to the object store before the log refers to them.

Snapshots are taken with an input that has files, before the turn's first call, with the result of each call that may
have written files, and at the end of the turn when all its processes are dead. A tree without changes costs a scan and
adds nothing to the log.
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
"""Seconds to wait for an object store that does not respond, rather than lose a call's result."""

SOON: Final = 5.0
"""Time limit in seconds when the worker is stopping or the turn has failed."""


@dataclass(slots=True)
class _Course:
    """Tracks what a turn has done so far that may affect its files."""

    first: bool
    """Whether this is the first attempt, and the turn is not at its end."""
    touched: bool
    """Whether there was a call, or an input with a file."""
    wrote: bool
    """Whether there was a call that may have written files."""
    called: bool = False
    """Whether this attempt has made a call. Until then all changes come from the input, even over several appends."""
    given: bool = False
    """Whether an input has added a file that is not in the log yet."""
    looked: bool = False
    reads: set[str] = field(default_factory=set)
    """Ids of calls that cannot write files."""

    @classmethod
    def of(cls, claim: Claim) -> Self:
        """Start from a claim. A lost attempt may have made calls and written files."""
        return cls(first=claim.attempt == 1, touched=claim.attempt > 1, wrote=claim.attempt > 1)

    @property
    def begins(self) -> bool:
        """Whether a snapshot taken now is the state in which the turn begins."""
        return self.first and not (self.called and self.looked)

    def takes(self, events: Sequence[Event]) -> tuple[bool, bool, bool]:
        """Record events. Returns whether they have the turn's first call, a new input file, and a result of a call that
        may have written files.
        """
        uses = [event for event in events if event.type in TOOL_USES]
        self.reads |= {event.id for event in uses if not may_have_written(event)}
        self.wrote = self.wrote or any(event.id not in self.reads for event in uses)
        self.called = self.called or bool(uses)
        given, self.given = self.given, False
        self.touched = self.touched or self.called or given
        return self.begins and bool(uses), given, any(map(self._wrote, events))

    def _wrote(self, event: Event) -> bool:
        """Whether the event is the result of a call that may have written files."""
        call_id = event.body.get("tool_use_id") or event.body.get("mcp_tool_use_id")
        return event.type in TOOL_RESULTS and call_id not in self.reads


class TurnFiles:
    def __init__(
        self, trees: Trees | None, claim: Claim, environment: OpenEnvironment, *, each_call: bool = True
    ) -> None:
        """`each_call`: take a snapshot after each call, not only at the start and the end of the turn."""
        self._trees = trees
        self._each_call = each_call
        self._environment = environment
        self._claim = claim
        self._last: dict[str, KeptSnapshot] = {**claim.files.kept}
        self._course = _Course.of(claim)
        self._collected: dict[str, Collected] = {}
        """The agent's own commits, collected at the end of the turn."""
        self.lock = asyncio.Lock()
        """Serialises appends with files, because each snapshot builds on the last one."""

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
        """Whether a snapshot is needed before these events are appended."""
        begins, given, results = self._course.takes(events)
        return begins or given or (self._each_call and results)

    def given(self) -> None:
        """Note that the turn has written a file of its input. The next append includes the file."""
        self._course.given = True

    async def look(self, *, full_scan: bool = False) -> list[TreeSnapshot]:
        """Return snapshots of the trees that changed. The caller holds the lock. `full_scan`: read every file."""
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
        """Upload the files that a call wrote before its result is committed, so that the commit takes less time."""
        if self._trees is None or not self._each_call:
            return
        async with self.lock:
            for name, tree in self._kept.items():
                await self._trees.keep(tree, self._last.get(name), self._collected.get(name), incremental=True)

    def committed(self, found: Sequence[TreeSnapshot]) -> None:
        self._last |= {snapshot.tree: snapshot.kept for snapshot in found}

    async def collect(self, *, within: float | None = None) -> None:
        """Collect the agent's own commits with a program inside the environment, which must still be open.

        If that fails or takes longer than `max_seconds` seconds, it is only logged. The files are stored in any case.
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
                reason = str(error) or "timed out"
                log.warning("commits not collected", action="turn.no_commits", tree=name, reason=reason)
            except Exception:  # the turn is complete and is not retried for this
                log.exception("commits not collected", action="turn.no_commits", tree=name)

    @property
    def may_have_changed(self) -> bool:
        """False if no process was started and no tool was called."""
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
        """Store the changes since the last result of a turn that fails or is handed over, within a short time limit.

        If that fails, the turn's files are those of its last result, and the turn ends all the same.
        """
        try:
            async with asyncio.timeout(SOON):
                if found := await self.at_the_end():
                    await turns.append(claim, (), files=found)
                    self.committed(found)
        except Exception as error:  # noqa: BLE001 - no failure here may prevent the turn's own end
            log.warning("files not stored", action="turn.files_not_kept", reason=str(error) or type(error).__name__)

    async def _keep(
        self, tree: KeptTree, last: KeptSnapshot | None, collected: Collected | None, *, incremental: bool
    ) -> KeptSnapshot | None:
        assert self._trees is not None
        async for attempt in stamina.retry_context(on=Unavailable, timeout=_PATIENCE, attempts=None, wait_max=1.0):
            with attempt:
                return await self._trees.keep(tree, last, collected, incremental=incremental)
        raise AssertionError  # the loop above returns or raises
