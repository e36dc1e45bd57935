"""What an opened environment says of itself on its host: whose it is and until when, in a directory of its own.

The directory is there before the first process starts and goes when the last one is gone, so that everything of ours
has one. It is also the place for what else the turn needs on disk while it lives, such as sockets.

    leases/<lease id>/lease     8 bytes: the deadline, rewritten at every renewal; then the rest, as JSON

A lease id begins with the worker's process and its pid namespace: things that carry it (a control group) tell who made
them by name alone. Workers in other containers may share the groups, and their pids mean nothing here.
"""

import json
import os
import secrets
import shutil
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final, Self

from footplate.environments.reaper.processes import NOBODY, PROC, Process, itself, process

DIRECTORY: Final = "leases"
"""In the data directory."""
FILE: Final = "lease"
MARGIN: Final = 1.0
"""Seconds past its deadline in which a guardian ends by itself."""
FOREIGN_AGE: Final = 86_400.0
"""Another host may share the directory. What it has not renewed for a day is nobody's."""
UNWRITTEN_AGE: Final = 60.0
"""A directory without its file is just being made, or its maker was killed before anything started."""
_DEADLINE: Final = struct.Struct(">d")
_TOKEN: Final = secrets.token_hex(2)
"""Random for each process: one on another host, or after a reboot, could have the same pid and start time."""
_numbers: Final = count(1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process can be told by its pid."""

    host: str
    boot: str
    pids: str
    """The pid namespace."""

    @classmethod
    @cache
    def here(cls) -> "Place":
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return cls(os.uname().nodename, boot, str((PROC / "self/ns/pid").readlink()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A lease as it is read."""

    place: Place
    worker: Process
    guardian: Process
    organisation: str
    session: str
    turn: str
    groups: Sequence[str] = ()
    """Its control groups: a worker that starts later may have another place for its own."""
    deadline: float = 0.0

    @classmethod
    def read(cls, directory: Path) -> "Record | None":
        """None if there is none, or one that a power failure left half written."""
        try:
            content = (directory / FILE).read_bytes()
            fields = json.loads(content[_DEADLINE.size :])
            return cls(
                place=Place(**fields["place"]),
                worker=Process(**fields["worker"]),
                guardian=Process(**fields["guardian"]),
                organisation=fields["organisation"],
                session=fields["session"],
                turn=fields["turn"],
                groups=fields["groups"],
                deadline=_DEADLINE.unpack(content[: _DEADLINE.size])[0],
            )
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            return None

    def write(self, directory: Path) -> None:
        fields = asdict(self)
        del fields["deadline"]
        new = directory / f"{FILE}.new"
        new.write_bytes(_DEADLINE.pack(self.deadline) + json.dumps(fields).encode())
        new.rename(directory / FILE)


def is_over(record: Record, here: Place, *, now: float, age: float, alive: Callable[[Process], bool]) -> bool:
    """Can nothing of it be alive by right? `now` by CLOCK_BOOTTIME; `age`: seconds since it was last written."""
    if record.place.boot != here.boot:
        return record.place.host == here.host or age > FOREIGN_AGE
    expired = now > record.deadline + MARGIN
    if record.place.pids != here.pids:
        return expired  # its processes have other numbers here
    return expired or not (alive(record.worker) or alive(record.guardian))


def maker(lease_id: str) -> Process | None:
    """The process that a lease id begins with. None if it is of another pid namespace, or no lease id."""
    namespace, _, rest = lease_id.partition("-")
    pid, _, rest = rest.partition("-")
    started = rest.partition("-")[0]
    here = namespace == _namespace() and pid.isdigit() and started.isdigit()
    return Process(int(pid), int(started)) if here else None


def new_id() -> str:
    me = itself()
    return f"{_namespace()}-{me.pid}-{me.started}-{_TOKEN}{next(_numbers)}"


def _namespace() -> str:
    """As short as it can be: a lease's directory holds sockets, whose paths must not be long."""
    return f"{int(Place.here().pids.strip('pid:[]')):x}"


class Lease:
    """Of one opened environment. `begin` before its first process, `end` after its last."""

    def __init__(self, directory: Path, organisation: str, session: str, turn: str) -> None:
        self.id = new_id()
        self.directory = directory / self.id
        self._owner = (organisation, session, turn)
        self._record: Record | None = None
        self._file = -1

    @classmethod
    def in_data(cls, data: Path, organisation: str, session: str, turn: str) -> Self:
        return cls(data / DIRECTORY, organisation, session, turn)

    def begin(self, deadline: float, groups: Sequence[Path] = ()) -> None:
        """`groups`: where its control groups will be."""
        organisation, session, turn = self._owner
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self._write(
            Record(
                place=Place.here(),
                worker=itself(),
                guardian=NOBODY,
                organisation=organisation,
                session=session,
                turn=turn,
                groups=[str(group / self.id) for group in groups],
                deadline=deadline,
            )
        )

    def guard(self, pid: int, deadline: float) -> None:
        """The guardian runs. Until this is written its worker's life is the turn's."""
        if self._record is not None:
            self._write(replace(self._record, guardian=process(pid), deadline=deadline))

    def renew(self, deadline: float) -> None:
        if self._file >= 0:
            os.pwrite(self._file, _DEADLINE.pack(deadline), 0)

    def end(self, *, clean: bool = True) -> None:
        """Unless it is clean the lease stays, and runs out: the reaper goes on from there. Safe to call again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            if clean:
                shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, record: Record) -> None:
        self._record = record
        record.write(self.directory)
        if self._file >= 0:
            os.close(self._file)
        self._file = os.open(self.directory / FILE, os.O_WRONLY | os.O_CLOEXEC)


def age_of(path: Path) -> float:
    """Seconds since it, or its lease file, was written."""
    try:
        return time.time() - (path / FILE).stat().st_mtime
    except OSError:
        pass
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
