"""The first process that Footplate runs in a container: connects to the worker, and then runs the init process.

    container_init FILTERS SOCKET UID GID [LIMIT=NUMBER…] [PORT=PATH…]

- `FILTERS` is the directory of the seccomp filters.
- `SOCKET` is the path of the worker's socket. The program connects to it twice. The first connection is the lifeline:
  when it closes, all processes of the turn end. The second connection carries the worker's requests.
- `UID` and `GID` are the agent's user and group, for a program that is not started as process 1.
- `LIMIT=NUMBER` sets a resource limit, such as `RLIMIT_NOFILE`.
- `PORT=PATH` forwards a loopback port to the socket at the path.

The program runs in a mounted copy of the worker's Python interpreter (see `portable_python`), so the image needs no
Python.
"""

from __future__ import annotations

import _socket
import ctypes
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from footplate.environments.programs import guardian_main as guardian
    from footplate.environments.programs import init_process
    from footplate.environments.programs import process_tree as tree
else:
    import guardian_main as guardian
    import init_process
    import process_tree as tree

PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
INSTRUCTION_BYTES = 8
"""The size of a filter instruction in bytes."""


class FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def main() -> None:
    """Connects and serves the turn.

    In a container that Footplate created, this is process 1, and all other processes die with it. In a named container
    it starts as root and forks a child that serves the turn as the agent's user. The parent stays as a watcher that the
    agent's user cannot signal.
    """
    filters, path, uid, gid, *arguments = sys.argv[1:]
    tree.set_dumpable(0)
    init_process.ignore_sigint()
    lifeline = connect(path)
    if os.getpid() != 1:
        fork_under_watcher(lifeline)
        tree.switch_user(int(uid), int(gid))
        tree.set_dumpable(0)
    apply_filters(filters)
    connection = connect(path)
    connection.setblocking(False)
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    init_process.close_all_except(sorted([0, 1, 2, tree.proc, lifeline.fileno(), connection.fileno()]))
    init_process.InitProcess(connection, float("inf"), init=None, lifeline=lifeline.fileno()).run(arguments)


def connect(path: str) -> _socket.socket:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    connection.connect(path)
    return connection


def apply_filters(directory: str) -> None:
    """Applies the seccomp filters permanently to this process and all its children.

    They are the filters of a sandbox, so commands can make the same system calls in both backends, even if Docker
    allows more. The core limit is set first, because the filters forbid changing it.
    """
    guardian.set_limits({"RLIMIT_CORE": 1})
    tree.libc.prctl(PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    for name in sorted(os.listdir(directory)):  # noqa: PTH208 - pathlib is not available here
        with open(f"{directory}/{name}", "rb") as file:  # noqa: PTH123
            content = file.read()
        program = FilterProgram(len(content) // INSTRUCTION_BYTES, content)
        if tree.libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(program)) != 0:
            raise OSError(ctypes.get_errno(), "the kernel rejected a seccomp filter")


def fork_under_watcher(lifeline: _socket.socket) -> None:
    """Continues in a child. The parent adopts its orphans, and kills all of them when the lifeline or the
    child ends.
    """
    tree.libc.prctl(tree.PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
    child = os.fork()
    if child == 0:
        tree.libc.prctl(tree.PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
        return
    init_process.close_all_except(sorted([0, 1, 2, tree.proc, lifeline.fileno()]))
    poll = select.poll()
    poll.register(os.pidfd_open(child), select.POLLIN)
    poll.register(lifeline.fileno(), select.POLLIN)
    poll.poll()
    tree.end_descendants()
    os._exit(0)
