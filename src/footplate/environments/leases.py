"""Leases of environments: files on the host that record the owner process and the deadline of each open environment.

The directory of a lease is created before the environment's first process and removed after its last one. It also holds
other files of the turn, such as sockets.

    leases/<lease id>/lease     8 bytes: the deadline, rewritten at every renewal; then the other fields, as JSON

A lease id starts with the worker's pid namespace, pid and start time. The name of a control group contains the lease
id, and therefore identifies the worker that created the group.
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

from footplate.environments.processes.process_identity import (
    NO_PROCESS,
    PROC,
    ProcessIdentity,
    current_process,
    identify_process,
)

LEASES_DIRECTORY: Final = "leases"
"""The subdirectory of the data directory."""
LEASE_FILE: Final = "lease"
EXPIRY_MARGIN: Final = 1.0
"""Seconds after the deadline in which a guardian exits by itself."""
MAX_FOREIGN_AGE: Final = 86_400.0
"""Another host may share the directory. A foreign lease that was not renewed for a day is treated as over."""
MAX_UNWRITTEN_AGE: Final = 60.0
"""A directory without a lease file is being created, or its creator was killed before anything started."""
_DEADLINE: Final = struct.Struct(">d")
_TOKEN: Final = secrets.token_hex(2)
"""Random per process, because a process on another host, or after a reboot, can have the same pid and start time."""
_numbers: Final = count(1)


@dataclass(frozen=True, slots=True)
class PidScope:
    """The scope in which a pid identifies a process."""

    host: str
    boot: str
    pids: str
    """The pid namespace."""

    @classmethod
    @cache
    def current(cls) -> "PidScope":
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return cls(os.uname().nodename, boot, str((PROC / "self/ns/pid").readlink()))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The content of a lease file."""

    place: PidScope
    worker: ProcessIdentity
    guardian: ProcessIdentity
    organisation: str
    session: str
    turn: str
    groups: Sequence[str] = ()
    """The paths of its control groups. They are recorded because a later worker may create its own elsewhere."""
    deadline: float = 0.0

    @classmethod
    def read(cls, directory: Path) -> "LeaseRecord | None":
        """Reads the lease of a directory. Returns None if it is missing, or incomplete after a power failure."""
        try:
            content = (directory / LEASE_FILE).read_bytes()
            fields = json.loads(content[_DEADLINE.size :])
            return cls(
                place=PidScope(**fields["place"]),
                worker=ProcessIdentity(**fields["worker"]),
                guardian=ProcessIdentity(**fields["guardian"]),
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
        new = directory / f"{LEASE_FILE}.new"
        new.write_bytes(_DEADLINE.pack(self.deadline) + json.dumps(fields).encode())
        new.rename(directory / LEASE_FILE)


def is_over(
    record: LeaseRecord, here: PidScope, *, now: float, age: float, alive: Callable[[ProcessIdentity], bool]
) -> bool:
    """Returns whether no process of the lease may be alive any more. `now` is by CLOCK_BOOTTIME; `age` is the number of
    seconds since the lease was last written.
    """
    if record.place.boot != here.boot:
        return record.place.host == here.host or age > MAX_FOREIGN_AGE
    expired = now > record.deadline + EXPIRY_MARGIN
    if record.place.pids != here.pids:
        return expired  # its pids have no meaning in this namespace
    return expired or not (alive(record.worker) or alive(record.guardian))


def creator_of(lease_id: str) -> ProcessIdentity | None:
    """Returns the process that created a lease id. Returns None if the text is not a lease id, or if it comes from
    another pid namespace.

    Workers in other containers may share the control groups, but their pids have no meaning in this namespace.
    """
    namespace, _, rest = lease_id.partition("-")
    pid, _, rest = rest.partition("-")
    started = rest.partition("-")[0]
    here = namespace == _namespace() and pid.isdigit() and started.isdigit()
    return ProcessIdentity(int(pid), int(started)) if here else None


def new_lease_id() -> str:
    me = current_process()
    return f"{_namespace()}-{me.pid}-{me.started}-{_TOKEN}{next(_numbers)}"


def _namespace() -> str:
    """Returns the pid namespace as a short text, because paths of sockets in a lease's directory must not be long."""
    return f"{int(PidScope.current().pids.strip('pid:[]')):x}"


class Lease:
    """The lease of one open environment. Call `begin` before its first process starts, and `end` after its last one is
    gone.
    """

    def __init__(self, directory: Path, organisation: str, session: str, turn: str) -> None:
        self.id = new_lease_id()
        self.directory = directory / self.id
        self._owner = (organisation, session, turn)
        self._record: LeaseRecord | None = None
        self._file = -1

    @classmethod
    def in_data_directory(cls, data: Path, organisation: str, session: str, turn: str) -> Self:
        return cls(data / LEASES_DIRECTORY, organisation, session, turn)

    def begin(self, deadline: float, groups: Sequence[Path] = ()) -> None:
        """Writes the lease. `groups` are the directories in which its control groups will be created."""
        organisation, session, turn = self._owner
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self._write(
            LeaseRecord(
                place=PidScope.current(),
                worker=current_process(),
                guardian=NO_PROCESS,
                organisation=organisation,
                session=session,
                turn=turn,
                groups=[str(group / self.id) for group in groups],
                deadline=deadline,
            )
        )

    def record_guardian(self, pid: int, deadline: float) -> None:
        """Records the guardian. Until then the turn counts as alive only as long as its worker is."""
        if self._record is not None:
            self._write(replace(self._record, guardian=identify_process(pid), deadline=deadline))

    def renew(self, deadline: float) -> None:
        if self._file >= 0:
            os.pwrite(self._file, _DEADLINE.pack(deadline), 0)

    def end(self, *, clean: bool = True) -> None:
        """Ends the lease. Unless `clean`, the record stays and expires, and the reaper continues from it. Safe to call
        again.
        """
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            if clean:
                shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, record: LeaseRecord) -> None:
        self._record = record
        record.write(self.directory)
        if self._file >= 0:
            os.close(self._file)
        self._file = os.open(self.directory / LEASE_FILE, os.O_WRONLY | os.O_CLOEXEC)


def seconds_since_write(path: Path) -> float:
    """Returns the seconds since the lease file, or else the directory, was last written."""
    try:
        return time.time() - (path / LEASE_FILE).stat().st_mtime
    except OSError:
        pass
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
