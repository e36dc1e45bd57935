"""Builds a name for the process that owns a container, and checks whether that process is alive. A name is never
reused.

A pid is not enough: pids are reused, and each pid namespace has its own pids. If the owner is in another pid namespace,
this module cannot tell whether the owner is alive.
"""

import os
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def owner_name(pid: int) -> str:
    """Returns the unique name of a process. Raises ProcessLookupError."""
    return f"{_boot_id()}-{_namespace()}-{pid}-{_start_time(pid)}"


def is_alive(owner: str) -> bool | None:
    """Returns whether the owner is alive; None if that is unknown."""
    try:
        boot, namespace, pid, started = owner.split("-")
        number = int(pid)
    except ValueError:
        return None
    if boot != _boot_id():
        return False
    if namespace != _namespace():
        return None
    try:
        return _start_time(number) == started
    except ProcessLookupError:
        return False


def _boot_id() -> str:
    return _BOOT.read_text().strip().replace("-", "")[:16]


def _namespace() -> str:
    return str(os.stat("/proc/self/ns/pid").st_ino)  # noqa: PTH116 - of the link's target


def _start_time(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        raise ProcessLookupError(pid) from None
    state, *rest = stat[stat.rindex(")") + 2 :].split()
    if state in {"Z", "X"}:
        raise ProcessLookupError(pid)
    return rest[18]
