"""One pass over this host: which leases are over, what is left of them, and its removal.

Everything of ours carries a lease id, and its lease was written before it and goes after it. So nothing has to be
guessed from age or emptiness, and two workers, or two installations, on one host never take each other's:

- a lease that is over by `is_over`: all that carries its id is ended and removed, the lease itself last;
- a control group or a trial directory without a lease here belongs to its maker, whom its id names: once that process
  is gone and the group is empty, nobody can use it again.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from footplate.environments.reaper import leases, processes
from footplate.environments.reaper.leases import Place, Record
from footplate.environments.reaper.processes import Process
from footplate.environments.removal import remove
from footplate.environments.sandbox.cgroups import removed

TRIAL: Final = "footplate-trial-"
"""A trial directory's name, before its lease id: where a worker or the doctor tries whether a sandbox works."""
_PATIENCE: Final = 2.0


@dataclass(slots=True)
class Found:
    living: set[str] = field(default_factory=set)
    """Ids of leases of living turns."""
    over: list[str] = field(default_factory=list)
    """Ids of leases whose turn is gone."""
    sessions: set[str] = field(default_factory=set)
    """That have a living lease: their directories are in use."""
    processes: int = 0
    cgroups: int = 0
    directories: int = 0

    @property
    def anything(self) -> bool:
        return bool(self.over or self.processes or self.cgroups or self.directories)


class Reaper:
    """Blocking; the worker runs it in a thread. Two at once do no harm: each removes what it finds."""

    def __init__(self, data: Path, groups: Sequence[Path] = (), *, trials: Path | None = None) -> None:
        """`groups`: where a worker in our place makes control groups. Leases say where theirs are."""
        self._leases = data / leases.DIRECTORY
        self._groups = groups
        self._trials = trials or Path(tempfile.gettempdir())

    def look(self) -> Found:
        """What a pass would remove."""
        return self._pass(removing=False)

    def reap(self) -> Found:
        return self._pass(removing=True)

    def left_by(self, worker: Process) -> bool:
        """Is there still a lease of this one?"""
        return any(leases.maker(name) == worker for name in _names(self._leases))

    def _pass(self, *, removing: bool) -> Found:
        found = Found()
        records = {name: Record.read(self._leases / name) for name in _names(self._leases)}
        for name, record in records.items():
            if self._is_over(name, record):
                found.over.append(name)
            else:
                found.living.add(name)
                if record is not None:
                    found.sessions.add(record.session)
        for name in found.over:
            self._end(name, records[name], found, removing=removing)
        for group in self._unowned_groups(set(records)):
            found.cgroups += 1
            if removing:
                removed(group, 0)
        for directory in self._unowned_trials():
            found.directories += 1
            if removing:
                remove(directory)
        return found

    def _is_over(self, name: str, record: Record | None) -> bool:
        age = leases.age_of(self._leases / name)
        if record is None:
            return age > leases.UNWRITTEN_AGE
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        return leases.is_over(record, Place.here(), now=now, age=age, alive=lambda process: process.alive)

    def _end(self, name: str, record: Record | None, found: Found, *, removing: bool) -> None:
        groups = [Path(group) for group in (record.groups if record else ()) if Path(group).is_dir()]
        guardian = [record.guardian] if record and _is_here(record) else []

        def theirs() -> list[Process]:
            grouped = [processes.process(pid) for group in groups for pid in _members(group)]
            return [one for one in {*processes.marked(name), *guardian, *grouped} if one.alive]

        found.directories += 1
        found.cgroups += len(groups)
        if not removing:
            found.processes += len(theirs())
            return
        killed, gone = processes.end(theirs, patience=_PATIENCE)
        found.processes += killed
        until = time.monotonic() + _PATIENCE
        if gone and all(removed(group, until) for group in groups):
            remove(self._leases / name)

    def _unowned_groups(self, owned: set[str]) -> Iterator[Path]:
        for root in self._groups:
            for name in _names(root):
                maker = leases.maker(name)
                if maker is not None and name not in owned and not maker.alive and not _members(root / name):
                    yield root / name

    def _unowned_trials(self) -> Iterator[Path]:
        with suppress(OSError):
            for directory in self._trials.glob(f"{TRIAL}*"):
                maker = leases.maker(directory.name.removeprefix(TRIAL))
                ours = directory.lstat().st_uid == os.geteuid()
                if ours and maker is not None and not maker.alive:
                    yield directory


def trial_name() -> str:
    return f"{TRIAL}{leases.new_id()}"


def _is_here(record: Record) -> bool:
    here = Place.here()
    return (record.place.boot, record.place.pids) == (here.boot, here.pids)


def _names(directory: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _members(group: Path) -> list[int]:
    try:
        return [int(line) for line in (group / "cgroup.procs").read_text().split() if line != "0"]
    except OSError:
        return []
