"""Finds and kills the processes that a guardian process has started: all of them, or those of one command.

There are two modes. With `namespace`, the guardian creates a pid namespace; when the namespace's init process dies, the
kernel kills all processes inside. With `descendants`, used if the kernel permits no namespace, the guardian follows
parent links; orphans are passed to the watcher or the guardian (subreapers).

    namespace      worker ── guardian ─┬─ init (pid 1 of the pid namespace)
                                       └─ commands, inside the namespace
    descendants    worker ── watcher ── guardian ── commands

This module also mounts directories and switches the user; like `guardian_main`, it imports only a few standard modules.
"""

from __future__ import annotations

import _signal  # pyrefly: ignore[missing-import]  # the C part of `signal`, always loaded
import ctypes
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_SLAVE = 2, 4, 8, 0x1000, 0x4000, 0x80000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36

libc = ctypes.CDLL(None, use_errno=True)
# Opened before a new /proc can cover it, because the guardian itself runs outside the namespace.
proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


class suppress:  # noqa: N801 - replaces contextlib.suppress, whose import is slow
    def __init__(self, *errors: type[BaseException]) -> None:
        self.errors = errors

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self.errors)


def stage_mounts(directory: str, sources: list[str]) -> None:
    """Mounts each source at DIRECTORY/<its index>, visible only to this process and its children.

    The process then switches to another user. That user can use the mounts even if it may not access the source paths.
    """
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount("none", "/", None, MS_REC | MS_SLAVE)
    # Opened before the directory is covered, because a source may be inside it.
    opened = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source in sources]
    mount("tmpfs", directory, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k")
    for number, source in enumerate(opened):
        target = f"{directory}/{number}"
        os.mkdir(target)  # noqa: PTH102 - pathlib costs milliseconds to import
        mount(f"/proc/self/fd/{source}", target, None, MS_BIND | MS_REC)
        os.close(source)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    if libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


def switch_user(uid: int, gid: int) -> None:
    """Switches to the given user, if it is another one, and drops the worker's privileges."""
    if (uid, gid) == (os.geteuid(), os.getegid()):
        return
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    # After a change of user the kernel denies access to /proc/self, which creating a user namespace writes to.
    set_dumpable(1)


def set_dumpable(value: int) -> None:
    """Sets whether this process is dumpable. With 0, no process of the same user may trace it or read its memory and
    descriptors.
    """
    libc.prctl(PR_SET_DUMPABLE, ctypes.c_ulong(value))


def enter_namespace() -> int | None:
    """Enters a pid namespace, which contains all later children. Returns the pid of its init, or None if the kernel
    refuses.
    """
    flags = CLONE_NEWPID | CLONE_NEWNS
    if libc.unshare(flags) != 0:
        # A process cannot leave a user namespace that was only partly set up, so try it in a child first.
        if not succeeds_in_child(lambda: enter_user_namespace(flags)):
            return None
        enter_user_namespace(flags)
    lifeline, _lifeline_writer = os.pipe()  # only the guardian holds it open, until it exits
    ready, ready_writer = os.pipe()
    init = os.fork()
    if init == 0:
        run_init(lifeline, ready_writer)
    os.close(lifeline)
    os.close(ready_writer)
    os.read(ready, 1)
    os.close(ready)
    return init


def enter_user_namespace(flags: int) -> None:
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(flags | CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        file = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(file, content.encode())
        os.close(file)


def succeeds_in_child(action: Callable[[], None]) -> bool:
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def run_init(lifeline: int, ready_writer: int) -> NoReturn:  # pyrefly: ignore[bad-return]  # `finally` exits
    """Waits as the namespace's init until the guardian dies: by signal, or by pipe if it died before the signal was
    set.
    """
    try:
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(_signal.SIGKILL))
        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # the kernel then reaps orphans
        close_all_except(lifeline, ready_writer)
        mount_proc()
        os.write(ready_writer, b".")
        os.close(ready_writer)
        os.read(lifeline, 1)
    finally:
        os._exit(0)


def mount_proc() -> None:
    """Mounts a /proc of the namespace's own processes, if that is allowed. First stops mount propagation to
    the host.
    """
    with suppress(OSError):
        mount("none", "/", None, MS_REC | MS_SLAVE)
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def end_namespace(init: int) -> None:
    """Kills the namespace's init. The kernel kills all processes inside, and init can be reaped only when all of them
    are gone.
    """
    with suppress(ProcessLookupError):
        os.kill(init, _signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def fork_under_watcher() -> int:
    """Continues in a child process, while the parent stays as the watcher that cleans up after it. Returns the pipe
    that tells the child that the parent died.
    """
    libc.prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
    lifeline, lifeline_writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(lifeline_writer)
        libc.prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
        return lifeline
    close_all_except(0, 1, 2, lifeline_writer, proc)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
    end_descendants()
    os._exit(0)


def close_all_except(*spared: int) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - pathlib costs milliseconds to import
        if int(name) not in spared:
            with suppress(OSError):  # the descriptor of the directory listing itself
                os.close(int(name))


def end_descendants() -> None:
    """Kills descendants until none remain. Processes that were forked or orphaned in between are found in the next
    round.
    """
    me = os.getpid()
    while True:
        reap()
        alive = descendants([me], read_processes())
        if not alive:
            return
        kill_processes(alive)
        time.sleep(0.001)


def kill_processes(pids: Iterable[int]) -> None:
    """Stops all processes before killing any: a shell that sees its command die would otherwise run the next one."""
    for signal in (_signal.SIGSTOP, _signal.SIGKILL):
        send_signal(signal, pids)


def send_signal(signal: int, pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal)


def reap() -> list[tuple[int, int]]:
    ended = []
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append((found[0], os.waitstatus_to_exitcode(found[1])))
    return ended


class ProcessStat:
    __slots__ = ("group", "parent", "session", "started", "state")

    def __init__(self, stat: bytes) -> None:
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.state = fields[0]
        self.parent, self.group, self.session = (int(field) for field in fields[1:4])
        self.started = int(fields[19])


def read_processes() -> dict[int, ProcessStat]:
    table = {}
    for name in os.listdir(proc):  # noqa: PTH208
        if name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                stat = os.open(f"{name}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
                try:
                    table[int(name)] = ProcessStat(os.read(stat, 4096))
                finally:
                    os.close(stat)
    return table


def descendants(roots: Iterable[int], table: dict[int, ProcessStat]) -> list[int]:
    """Returns the descendants, parents before their children. Signals are sent in this order."""
    children: dict[int, list[int]] = {}
    for pid, process in table.items():
        children.setdefault(process.parent, []).append(pid)
    found: list[int] = []
    frontier = list(roots)
    while frontier:
        frontier = [child for parent in frontier for child in children.get(parent, [])]
        found += frontier
    return found


class EndOthers:
    """Kills every process except a few, in rounds as in `end_descendants`, until no other process remains."""

    def __init__(self, spared: set[int]) -> None:
        self.spared = spared

    def advance(self, init: int | None) -> bool:
        table = read_processes()
        others = [
            pid
            for pid in descendants([os.getpid()], table)
            if pid != init and pid not in self.spared and table[pid].state not in {b"Z", b"X"}
        ]
        kill_processes(others)
        return not others


class StopCommand:
    """Ends one command: SIGTERM once, SIGKILL after the grace period, done when no process of it remains.

    Processes that start after the SIGTERM are spared until the SIGKILL, because a signal handler may need them to clean
    up.
    """

    def __init__(self, leader: int, grace: float) -> None:
        self.leader = leader
        self.grace = grace
        self.kill_at: float | None = None
        self.known: dict[int, int] = {}

    def advance(self, init: int | None) -> bool:
        """Sends the signals that are due. Returns True when all processes are gone."""
        members = self._members(init)
        if self.kill_at is None:
            self.kill_at = time.monotonic() + self.grace
            if self.grace > 0:
                send_signal(_signal.SIGTERM, members)
        if time.monotonic() >= self.kill_at:
            kill_processes(members)
        self.known.update(members)
        return not members

    def _members(self, init: int | None) -> dict[int, int]:
        """Returns the living processes of the command: its session and group, their descendants, and processes that
        were known before their parents died.
        """
        table = read_processes()
        members: set[int] = set()
        alive = {}
        for pid in descendants([os.getpid()], table):
            process = table[pid]
            known = self.known.get(pid) == process.started or process.parent in members
            if pid != init and (known or self.leader in {pid, process.session, process.group}):
                members.add(pid)
                if process.state not in {b"Z", b"X"}:
                    alive[pid] = process.started
        return alive
