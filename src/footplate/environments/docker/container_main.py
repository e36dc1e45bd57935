"""The first process of ours in a container: it connects back to the worker and is then `inside_main`.

It runs in the worker's own interpreter, which is mounted beside it (see `runtime`): an image needs no Python.

    container_main SOCKET UID GID [LIMIT… DOOR…]

In a container that Footplate started it is process 1, and all that runs there is gone when it is. In one that is named
it is root and stays behind as a watcher, which the agent's user cannot touch; what serves the turn is its child.

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
    from footplate.environments import guardian_tree as tree
    from footplate.environments import inside_main
else:
    import guardian_tree as tree
    import inside_main

PR_SET_NO_NEW_PRIVS = 38


def main() -> None:
    path, uid, gid, *given = sys.argv[1:]
    tree.set_dumpable(0)
    inside_main.deafen()
    line = connect(path)
    if os.getpid() != 1:
        leave_to_watcher(line)
        tree.become(int(uid), int(gid))
        tree.libc.prctl(PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
        tree.set_dumpable(0)
    connection = connect(path)
    connection.setblocking(False)
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    inside_main.close_all_but(sorted([0, 1, 2, tree.proc, line.fileno(), connection.fileno()]))
    inside_main.Inside(connection, float("inf"), init=None, lifeline=line.fileno()).live(given)


def connect(path: str) -> _socket.socket:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    connection.connect(path)
    return connection


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
