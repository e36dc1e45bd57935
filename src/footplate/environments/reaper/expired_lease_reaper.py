"""Runs one pass of the reaper on this host: finds expired leases, kills their processes and removes their files.

Each process, control group and directory is labelled with a lease id. A lease is written before its resources are
created and removed after them, so two workers or installations never remove each other's resources. A control group
without a lease is removed once it is empty and the process named in its id has exited. The temporary directory of a
sandbox test is removed once the process named in its id has exited.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from footplate.environments import leases
from footplate.environments.directory_removal import remove_directory
from footplate.environments.isolation.cgroups import remove_group
from footplate.environments.leases import LeaseRecord, PidScope
from footplate.environments.processes import process_identity
from footplate.environments.processes.process_identity import ProcessIdentity

TRIAL_PREFIX: Final = "footplate-trial-"
"""The prefix of a trial directory's name, before its lease id. A worker or the doctor tests a sandbox there."""
_PATIENCE: Final = 2.0


@dataclass(slots=True)
class ReaperResult:
    living: set[str] = field(default_factory=set)
    """Ids of the leases of living turns."""
    over: list[str] = field(default_factory=list)
    """Ids of the leases of ended turns."""
    sessions: set[str] = field(default_factory=set)
    """Sessions with a living lease, whose directories are in use."""
    processes: int = 0
    cgroups: int = 0
    directories: int = 0

    @property
    def has_leftovers(self) -> bool:
        return bool(self.over or self.processes or self.cgroups or self.directories)


class Reaper:
    """Blocks, so the worker runs it in a thread. Concurrent passes are safe: each removes what it finds."""

    def __init__(self, data: Path, groups: Sequence[Path] = (), *, trials: Path | None = None) -> None:
        """`groups` are the directories where this worker would create control groups. Leases record their own."""
        self._leases = data / leases.LEASES_DIRECTORY
        self._groups = groups
        self._trials = trials or Path(tempfile.gettempdir())

    def find_leftovers(self) -> ReaperResult:
        """Returns what `reap` would remove, and removes nothing."""
        return self._run_pass(removing=False)

    def reap(self) -> ReaperResult:
        return self._run_pass(removing=True)

    def has_leases_of(self, worker: ProcessIdentity) -> bool:
        """Returns whether the worker still has a lease."""
        return any(leases.creator_of(name) == worker for name in _list_directories(self._leases))

    def _run_pass(self, *, removing: bool) -> ReaperResult:
        found = ReaperResult()
        records = {name: LeaseRecord.read(self._leases / name) for name in _list_directories(self._leases)}
        for name, record in records.items():
            if self._is_over(name, record):
                found.over.append(name)
            else:
                found.living.add(name)
                if record is not None:
                    found.sessions.add(record.session)
        for name in found.over:
            self._end_lease(name, records[name], found, removing=removing)
        for group in self._unowned_groups(set(records)):
            found.cgroups += 1
            if removing:
                remove_group(group, 0)
        for directory in self._unowned_trials():
            found.directories += 1
            if removing:
                remove_directory(directory)
        return found

    def _is_over(self, name: str, record: LeaseRecord | None) -> bool:
        age = leases.seconds_since_write(self._leases / name)
        if record is None:
            return age > leases.MAX_UNWRITTEN_AGE
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        return leases.is_over(record, PidScope.current(), now=now, age=age, alive=lambda process: process.alive)

    def _end_lease(self, name: str, record: LeaseRecord | None, found: ReaperResult, *, removing: bool) -> None:
        groups = [Path(group) for group in (record.groups if record else ()) if Path(group).is_dir()]
        guardian = [record.guardian] if record and _is_local(record) else []

        def find_processes() -> list[ProcessIdentity]:
            grouped = [process_identity.identify_process(pid) for group in groups for pid in _cgroup_pids(group)]
            return [one for one in {*process_identity.find_by_lease(name), *guardian, *grouped} if one.alive]

        found.directories += 1
        found.cgroups += len(groups)
        if not removing:
            found.processes += len(find_processes())
            return
        killed, gone = process_identity.kill_until_gone(find_processes, patience=_PATIENCE)
        found.processes += killed
        until = time.monotonic() + _PATIENCE
        if gone and all(remove_group(group, until) for group in groups):
            remove_directory(self._leases / name)

    def _unowned_groups(self, owned: set[str]) -> Iterator[Path]:
        for root in self._groups:
            for name in _list_directories(root):
                maker = leases.creator_of(name)
                if maker is not None and name not in owned and not maker.alive and not _cgroup_pids(root / name):
                    yield root / name

    def _unowned_trials(self) -> Iterator[Path]:
        with suppress(OSError):
            for directory in self._trials.glob(f"{TRIAL_PREFIX}*"):
                maker = leases.creator_of(directory.name.removeprefix(TRIAL_PREFIX))
                is_own = directory.lstat().st_uid == os.geteuid()
                if is_own and maker is not None and not maker.alive:
                    yield directory


def new_trial_name() -> str:
    return f"{TRIAL_PREFIX}{leases.new_lease_id()}"


def _is_local(record: LeaseRecord) -> bool:
    here = PidScope.current()
    return (record.place.boot, record.place.pids) == (here.boot, here.pids)


def _list_directories(directory: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _cgroup_pids(group: Path) -> list[int]:
    try:
        return [int(line) for line in (group / "cgroup.procs").read_text().split() if line != "0"]
    except OSError:
        return []
