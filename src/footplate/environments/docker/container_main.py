"""The first process of ours in a container: it connects back to the worker and is then `inside_main`.

It runs in the worker's own interpreter, which is mounted beside it (see `runtime`): an image needs no Python.

    container_main FILTERS SOCKET UID GID [LIMIT… DOOR…]

In a container that Footplate started it is process 1, and all that runs there is gone when it is. In one that is named
it is root and stays behind as a watcher, which the agent's user cannot touch; what serves the turn is its child.

Before anything of the agent's runs it takes on the very filters of a sandbox, from files beside it: whatever an engine
holds containers to, what commands may ask of the kernel is the same in both.

Two connections, in this order. The line is held at its other end by a child of the guardian: when that is gone, by
whatever death, all ends here. The second is the worker's, for its requests.
"""

from __future__ import annotations

import _socket
import ctypes
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from footplate.environments import guardian_main as guardian
    from footplate.environments import guardian_tree as tree
    from footplate.environments import inside_main
else:
    import guardian_main as guardian
    import guardian_tree as tree
    import inside_main

PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
INSTRUCTION = 8
"""Bytes of one, in a filter."""


class FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def main() -> None:
    filters, path, uid, gid, *given = sys.argv[1:]
    tree.set_dumpable(0)
    inside_main.deafen()
    line = connect(path)
    if os.getpid() != 1:
        leave_to_watcher(line)
        tree.become(int(uid), int(gid))
        tree.set_dumpable(0)
    take_filters(filters)
    connection = connect(path)
    connection.setblocking(False)
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    inside_main.close_all_but(sorted([0, 1, 2, tree.proc, line.fileno(), connection.fileno()]))
    inside_main.Inside(connection, float("inf"), init=None, lifeline=line.fileno()).live(given)


def connect(path: str) -> _socket.socket:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    connection.connect(path)
    return connection


def take_filters(place: str) -> None:
    """For good, and for all that is started from here. The limit first: the filters let nobody change it."""
    guardian.set_limits({"RLIMIT_CORE": 1})
    tree.libc.prctl(PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    for name in sorted(os.listdir(place)):  # noqa: PTH208 - no such library in here
        with open(f"{place}/{name}", "rb") as file:  # noqa: PTH123
            content = file.read()
        program = FilterProgram(len(content) // INSTRUCTION, content)
        if tree.libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(program)) != 0:
            raise OSError(ctypes.get_errno(), "the kernel does not take a filter of system calls")


def leave_to_watcher(line: _socket.socket) -> None:
    """Go on in a child. The parent adopts what outlives it, and ends all of that with the line or the child."""
    tree.libc.prctl(tree.PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
    child = os.fork()
    if child == 0:
        tree.libc.prctl(tree.PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
        return
    inside_main.close_all_but(sorted([0, 1, 2, tree.proc, line.fileno()]))
    poll = select.poll()
    poll.register(os.pidfd_open(child), select.POLLIN)
    poll.register(line.fileno(), select.POLLIN)
    poll.poll()
    tree.end_descendants()
    os._exit(0)
