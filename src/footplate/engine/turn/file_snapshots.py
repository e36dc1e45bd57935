"""Takes snapshots of a turn's files and collects its outputs, and uploads both before the log refers to them.

A snapshot is taken when an input adds files, before the first tool call, and after each call that may have written
files. The last snapshot is taken when all processes of the turn have ended. If no file has changed, nothing is added to
the log. Outputs are collected at the same times, except before the first call.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self, TypeVar

import stamina
import structlog

from footplate.domain.errors import FootplateError, Unavailable
from footplate.domain.files.session_outputs import OutputChanges
from footplate.domain.files.snapshots import (
    HOME_TREE,
    ChildFiles,
    CollectedCommits,
    SessionFiles,
    StoredSnapshot,
    TreeSnapshot,
    may_have_written,
    uses_working_tree,
)
from footplate.domain.organisations.limits import OrganisationLimitExceeded
from footplate.domain.ports.child_sessions import FileMerge
from footplate.domain.ports.engine import (
    Claim,
    OpenEnvironment,
    OutputCollector,
    OutputDirectories,
    SessionTree,
    Trees,
    TurnStore,
)
from footplate.domain.projects.allowed_directories import CONTEXT_KEY
from footplate.domain.projects.project import SessionProject
from footplate.domain.sessions.events import TOOL_RESULTS, TOOL_USES, Event
from footplate.domain.sessions.turns import TurnOutcome

log = structlog.get_logger(__name__)

T = TypeVar("T")

_APPLY_SECONDS: Final = 300.0
_MAX_REASON_CHARACTERS: Final = 500
_COMMIT_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_UPLOAD_TIMEOUT: Final = 30.0
"""Seconds to wait for an object store that does not respond, rather than lose a call's result."""

RESCUE_SECONDS: Final = 5.0
"""Time limit in seconds when the worker is stopping or the turn has failed."""


@dataclass(slots=True)
class _TurnProgress:
    """Tracks what a turn has done so far that may affect its files."""

    is_first_attempt: bool
    """Whether this is the first attempt, and the turn is not at its end."""
    may_have_changed: bool
    """Whether there was a call, or an input with a file."""
    has_write_call: bool
    """Whether there was a call that may have written files."""
    has_called: bool = False
    """Whether this attempt has made a call. Until then all changes come from the input, even over several appends."""
    has_new_input_file: bool = False
    """Whether an input has added a file that is not in the log yet."""
    has_snapshot: bool = False
    read_only_calls: set[str] = field(default_factory=set)
    """Ids of calls that cannot write files."""

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        """Start from a claim. A lost attempt may have made calls and written files."""
        return cls(
            is_first_attempt=claim.attempt == 1, may_have_changed=claim.attempt > 1, has_write_call=claim.attempt > 1
        )

    @property
    def is_turn_start(self) -> bool:
        """Whether a snapshot taken now is the state in which the turn begins."""
        return self.is_first_attempt and not (self.has_called and self.has_snapshot)

    def record_events(self, events: Sequence[Event]) -> tuple[bool, bool, bool]:
        """Record events. Returns whether they have the turn's first call, a new input file, and a result of a call that
        may have written files.
        """
        uses = [event for event in events if event.type in TOOL_USES]
        self.read_only_calls |= {event.id for event in uses if not may_have_written(event)}
        self.has_write_call = self.has_write_call or any(event.id not in self.read_only_calls for event in uses)
        calls = [event for event in uses if uses_working_tree(event)]
        self.has_called = self.has_called or bool(calls)
        has_new_input_file, self.has_new_input_file = self.has_new_input_file, False
        self.may_have_changed = self.may_have_changed or self.has_called or has_new_input_file
        return self.is_turn_start and bool(calls), has_new_input_file, any(map(self._is_write_result, events))

    def _is_write_result(self, event: Event) -> bool:
        """Whether the event is the result of a call that may have written files."""
        call_id = event.body.get("tool_use_id") or event.body.get("mcp_tool_use_id")
        return event.type in TOOL_RESULTS and call_id not in self.read_only_calls


def with_commits(
    outcome: TurnOutcome,
    projects: Sequence[SessionProject],
    snapshots: Mapping[str, StoredSnapshot],
    directory_commit: str | None = None,
) -> TurnOutcome:
    """Add the agent's commit in each project, as of these snapshots. Without a snapshot, it is the base commit."""
    heads = {tree: stored.snapshot.head for tree, stored in snapshots.items()}
    commits = {project.id: heads.get(project.id) or project.base_commit for project in projects}
    known = {project_id: commit for project_id, commit in commits.items() if commit is not None}
    first = known.get(projects[0].id) if projects else directory_commit
    return replace(outcome, commit=first, commits=known) if first or known else outcome


class TurnFiles:
    def __init__(
        self,
        trees: Trees,
        claim: Claim,
        environment: OpenEnvironment,
        *,
        output_directories: OutputDirectories | None = None,
        each_call: bool = True,
    ) -> None:
        """`each_call`: take a snapshot after each call, not only at the start and the end of the turn."""
        self._trees = trees
        self._each_call = each_call
        self._environment = environment
        self._claim = claim
        self._last: dict[str, StoredSnapshot] = {**claim.files.snapshots}
        self._progress = _TurnProgress.from_claim(claim)
        self._collected: dict[str, CollectedCommits] = {}
        """The agent's own commits, collected at the end of the turn."""
        self._directory_commit: str | None = None
        """The commit that is checked out in the user's directory at the end of the turn."""
        self._output_directories = output_directories
        self._output_collector: OutputCollector | None = None
        self._are_outputs_published = claim.files.outputs.is_published
        self.lock = asyncio.Lock()
        """Serialises appends with files, because each snapshot builds on the last one."""

    @property
    def _session_trees(self) -> dict[str, SessionTree]:
        """The trees to snapshot, by name. Empty until the environment is open."""
        projects = {project.id: project for project in self._claim.config.projects}
        return {
            name: SessionTree(
                organisation=self._claim.organisation,
                session_id=self._claim.session_id,
                project=projects.get(name),
                files=files,
                is_additional=number > 0,
            )
            for number, (name, files) in enumerate(self._environment.trees.items())
        }

    @property
    def _home(self) -> SessionTree | None:
        """The session's HOME, if snapshots of it are taken and the environment is open."""
        files = self._environment.home_files
        if files is None:
            return None
        return SessionTree(
            organisation=self._claim.organisation,
            session_id=self._claim.session_id,
            project=None,
            files=files,
            is_additional=True,
            is_home=True,
        )

    @property
    def _all_trees(self) -> dict[str, SessionTree]:
        home = self._home
        return self._session_trees if home is None else {**self._session_trees, HOME_TREE: home}

    def needs_snapshot(self, events: Sequence[Event]) -> bool:
        """Whether a snapshot is needed before these events are appended."""
        is_first_call, has_new_input_file, has_write_result = self._progress.record_events(events)
        return is_first_call or has_new_input_file or (self._each_call and has_write_result)

    def note_input_file(self) -> None:
        """Note that the turn has written a file of its input. The next append includes the file."""
        self._progress.has_new_input_file = True

    async def take_snapshots(self, *, full_scan: bool = False) -> list[TreeSnapshot]:
        """Return snapshots of the trees that changed. The caller holds the lock. `full_scan`: read every file."""
        is_turn_start, self._progress.has_snapshot = self._progress.is_turn_start, True
        if not full_scan:  # the full scan at the end of a turn runs after the environment is closed
            await self._environment.ensure_open()
        snapshots = []
        for name, tree in self._session_trees.items():
            incremental = self._each_call and not full_scan
            stored = await self._store_snapshot(
                tree, self._last.get(name), self._collected.get(name), incremental=incremental
            )
            if stored is not None and stored != self._last.get(name):
                snapshots.append(TreeSnapshot(name, stored, is_turn_start))
        if (home := self._home) is not None and not is_turn_start:
            stored = await self._store_home(home, is_final=full_scan)
            if stored is not None and stored != self._last.get(HOME_TREE):
                snapshots.append(TreeSnapshot(HOME_TREE, stored))
        return snapshots

    async def collect_outputs(self, *, is_final: bool = False) -> OutputChanges | None:
        """Store the outputs that changed, and return what to append to the log. The caller holds the lock."""
        directory = self._environment.outputs
        if self._output_collector is None and directory is not None and self._output_directories is not None:
            claim = self._claim
            self._output_collector = self._output_directories.open_collector(
                claim.organisation, claim.session_id, directory, claim.files.outputs
            )
        if self._output_collector is None or (not is_final and not self._progress.has_write_call):
            return None
        return await self._output_collector.collect(is_final=is_final)

    async def commit_outputs(
        self, commit: Callable[[OutputChanges | None], Awaitable[T]], changes: OutputChanges | None
    ) -> T:
        """Commit with these changes, or without the new files if the organisation has no room for them."""
        try:
            result = await commit(changes)
        except OrganisationLimitExceeded as error:
            assert self._output_collector is not None
            changes = self._output_collector.refuse_added(error.message)
            result = await commit(changes)
        if changes is not None and self._output_collector is not None:
            self._are_outputs_published = False
            await self._output_collector.mark_committed()
        return result

    def outputs_to_publish(self, changes: OutputChanges | None) -> OutputChanges | None:
        """Return the changes for the end of the turn. None: clients already see the current outputs."""
        if changes is None and not self._are_outputs_published:
            return OutputChanges(omitted=None)
        return changes

    async def upload_ahead(self) -> None:
        """Upload the files that a call wrote before its result is committed, so that the commit takes less time."""
        if not self._each_call:
            return
        async with self.lock:
            for name, tree in self._session_trees.items():
                await self._trees.store_snapshot(
                    tree, self._last.get(name), self._collected.get(name), incremental=True
                )

    def mark_committed(self, snapshots: Sequence[TreeSnapshot]) -> None:
        self._last |= {snapshot.tree: snapshot.stored for snapshot in snapshots}
        files, trees = SessionFiles({**self._last}, self._claim.files.ancestors), self._all_trees
        for snapshot in snapshots:
            self._trees.consolidate_packs_later(trees[snapshot.tree], files)

    async def collect_commits(self, *, max_seconds: float | None = None) -> None:
        """Collect the agent's own commits with a program inside the environment, which must still be open. In a user's
        directory, only read which commit is checked out.

        If that fails or takes longer than `max_seconds` seconds, it is only logged. The files are stored in any case.
        """
        if CONTEXT_KEY in self._claim.context and self.may_have_changed:
            await self._read_directory_commit()
        if not self._progress.has_write_call:
            return
        for name, inside_path in self._environment.inside_paths.items():
            try:
                async with asyncio.timeout(max_seconds):
                    self._collected[name] = await self._trees.collect_commits(
                        self._session_trees[name], self._environment, inside_path, self._last.get(name)
                    )
            except (FootplateError, TimeoutError) as error:
                reason = str(error) or "timed out"
                log.warning(
                    "the agent's commits could not be collected", action="turn.no_commits", tree=name, reason=reason
                )
            except Exception:  # the turn is complete and is not retried for this
                log.exception("the agent's commits could not be collected", action="turn.no_commits", tree=name)

    async def _read_directory_commit(self) -> None:
        argv = ["git", "-C", self._environment.root, "rev-parse", "--quiet", "--verify", "HEAD^{commit}"]
        try:
            result = await self._environment.run(argv, timeout=RESCUE_SECONDS)
        except (FootplateError, OSError) as error:
            log.warning("the commit of the directory could not be read", action="turn.no_commit", reason=str(error))
            return
        text = result.stdout.decode("ascii", "replace").strip()
        self._directory_commit = text if result.exit_code == 0 and _COMMIT_ID.fullmatch(text) else None

    def record_commits(self, outcome: TurnOutcome, final_snapshots: Sequence[TreeSnapshot]) -> TurnOutcome:
        """Add the commits that are checked out at the end of the turn to its outcome."""
        snapshots = {**self._last, **{found.tree: found.stored for found in final_snapshots}}
        return with_commits(outcome, self._claim.config.projects, snapshots, self._directory_commit)

    @property
    def may_have_changed(self) -> bool:
        """False if no process was started and no tool was called."""
        return self._progress.may_have_changed or self._environment.was_used

    async def merge_child(self, child: ChildFiles, *, replaces: bool) -> FileMerge:
        """Add the files of a child session to those of this one: in all trees, or in none."""
        await self._environment.ensure_open()
        patches: dict[str, bytes] = {}
        conflicts: list[str] = []
        async with self.lock:
            for name, tree in self._session_trees.items():
                ours = await self._store_snapshot(tree, self._last.get(name), None, incremental=False)
                merge = await self._trees.merge_child(tree, ours, child, replaces=replaces)
                conflicts += merge.conflicts
                patches |= {name: merge.patch} if merge.patch else {}
        if conflicts or not patches:
            return FileMerge(
                session_id=child.session_id,
                state="conflict" if conflicts else "unchanged",
                conflicts=tuple(conflicts),
            )
        self._progress.may_have_changed = True
        if problems := await self._apply_to_all(patches):
            return FileMerge(session_id=child.session_id, state="failed", conflicts=tuple(problems))
        return FileMerge(session_id=child.session_id, state="merged")

    async def _apply_to_all(self, patches: Mapping[str, bytes]) -> Sequence[str]:
        """Apply the patches to their trees. If one cannot be applied, no tree changes. Return the reasons."""
        checks = [await self._apply(name, patch, "--check") for name, patch in patches.items()]
        if problems := [problem for problem in checks if problem]:
            return problems
        applied: list[str] = []
        for name, patch in patches.items():
            if problem := await self._apply(name, patch):
                undone = [await self._apply(one, patches[one], "--reverse") for one in reversed(applied)]
                return [problem, *(f"The files that were added could not be removed: {one}" for one in undone if one)]
            applied.append(name)
        return ()

    async def _apply(self, name: str, patch: bytes, *options: str) -> str | None:
        """Apply a patch with git in the environment. Return why it failed."""
        directory = self._environment.inside_paths.get(name, self._environment.root)
        argv = ["git", "-C", directory, "apply", "--whitespace=nowarn", *options, "-"]
        result = await self._environment.run(argv, stdin=patch, timeout=_APPLY_SECONDS)
        if result.exit_code == 0:
            return None
        reason = result.error or result.stderr.decode("utf-8", "replace").strip()[:_MAX_REASON_CHARACTERS]
        return f"{directory}: {reason}"

    async def take_final_snapshots(self) -> list[TreeSnapshot]:
        if not self.may_have_changed:
            return []
        self._progress.is_first_attempt = False
        async with self.lock:
            return await self.take_snapshots(full_scan=True)

    async def collect_final_outputs(self) -> OutputChanges | None:
        if not self.may_have_changed:
            return None
        async with self.lock:
            return await self.collect_outputs(is_final=True)

    async def close(self, *, merge_packs: bool = True) -> None:
        stops = [self._trees.stop_watching(tree, merge_packs=merge_packs) for tree in self._all_trees.values()]
        await asyncio.gather(*stops)

    async def rescue_changes(self, turns: TurnStore, claim: Claim) -> None:
        """Store the changes since the last result of a turn that fails or is handed over, within a short time limit.

        If that fails, the turn's files are those of its last result, and the turn ends all the same.
        """
        try:
            async with asyncio.timeout(RESCUE_SECONDS):
                snapshots, outputs = await self.take_final_snapshots(), await self.collect_final_outputs()
                if snapshots or outputs is not None:
                    await self.commit_outputs(
                        lambda changes: turns.append(claim, (), files=snapshots, outputs=changes), outputs
                    )
                    self.mark_committed(snapshots)
        except Exception as error:  # noqa: BLE001 - no failure here may prevent the turn's own end
            log.warning(
                "the session's files could not be stored",
                action="turn.files_not_kept",
                reason=str(error) or type(error).__name__,
            )

    async def _store_snapshot(
        self, tree: SessionTree, last: StoredSnapshot | None, collected: CollectedCommits | None, *, incremental: bool
    ) -> StoredSnapshot | None:
        return await _retry_upload(lambda: self._trees.store_snapshot(tree, last, collected, incremental=incremental))

    async def _store_home(self, home: SessionTree, *, is_final: bool) -> StoredSnapshot | None:
        last = self._last.get(HOME_TREE)
        return await _retry_upload(lambda: self._trees.store_home(home, last, is_final=is_final))


async def _retry_upload(upload: Callable[[], Awaitable[T]]) -> T:
    async for attempt in stamina.retry_context(on=Unavailable, timeout=_UPLOAD_TIMEOUT, attempts=None, wait_max=1.0):
        with attempt:
            return await upload()
    raise AssertionError  # the loop above returns or raises
