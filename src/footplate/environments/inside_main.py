"""The init process of a sandbox: starts the turn's commands there, and reads and writes the turn's files.

bubblewrap creates the boundary and then executes this program, which has no privilege that the agent's commands lack.
It is process 1 of its pid namespace: no command can signal it, and all commands die with it. It is not dumpable: no
command can trace it. A command that took it over anyway could report false exit codes to the worker, and nothing more.

It runs the guardian's loop without a lease. The guardian outside holds the lease, and kills what bubblewrap started.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C part of `signal`, always loaded
import errno
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from footplate.environments import guardian_main as guardian
    from footplate.environments import guardian_tree as tree
    from footplate.environments import inside_doors, plain_files
else:
    import guardian_main as guardian
    import guardian_tree as tree
    import inside_doors
    import plain_files

HIGHEST = 1 << 20
FIRST_TO_DIE = b"500"
"""The OOM score of commands. The kernel kills them before the init process, which can still report it."""


def main() -> None:
    tree.set_dumpable(0)
    deafen()
    close_all_but([0, 1, 2, tree.proc])
    Inside(guardian.take_connection(), float("inf"), init=None, lifeline=None).live(sys.argv[1:])


def deafen() -> None:
    """Ignores SIGINT, the only signal that Python would let through to process 1."""
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


class Inside(guardian.Guardian):
    doors: dict[int, Any]
    """Listening sockets by descriptor, each with the path that it forwards to."""
    carrier: int | None = None
    """The pid of the child that forwards the bytes, once a client has connected."""

    def live(self, arguments: list[str]) -> NoReturn:
        """Serves until the end. `arguments` contains resource limits by name, and socket paths by the port that
        leads to them.
        """
        entries = [entry.split("=", 1) for entry in arguments]
        guardian.set_limits({name: int(number) for name, number in entries if not name.isdigit()})
        self.open_doors([(int(port), path) for port, path in entries if port.isdigit()])
        self.serve()
        os._exit(0)

    def open_doors(self, targets: list[tuple[int, str]]) -> None:
        self.doors = inside_doors.listen(targets)
        self.watch_doors(select.POLLIN)

    def watch_doors(self, events: int) -> None:
        for fd in self.doors:
            self.poll.register(fd, events)

    def attend(self, events: dict[int, int]) -> None:
        connecting = [fd for fd in self.doors if events.get(fd)]
        if not connecting or self.carrier is not None:
            return
        try:
            self.carrier = os.fork()
        except OSError:
            for fd in connecting:  # reject them, otherwise poll would return immediately without end
                inside_doors.accept(self.doors[fd][0])
            return
        if self.carrier == 0:
            self.be_carrier()
        self.watch_doors(0)

    def be_carrier(self) -> NoReturn:
        try:
            guardian.clean_start({})
            close_all_but(sorted(self.doors))
            inside_doors.carry(self.doors)
        finally:
            os._exit(guardian.NO_START)

    def own_children(self) -> set[int]:
        return set() if self.carrier is None else {self.carrier}

    def other_ended(self, pid: int) -> None:
        if pid == self.carrier:
            self.carrier = None
            self.watch_doors(select.POLLIN)

    def become(self, message: dict[str, Any], fds: dict[int, int]) -> NoReturn:
        try:
            guardian.clean_start(fds)
            close_all_but(sorted(fds))
            # Only now, when no memory or descriptor of the init process is exposed.
            tree.set_dumpable(1)
            offer_to_die_first()
        except BaseException:  # noqa: BLE001 - a child that returned would run the init loop a second time
            os._exit(guardian.NO_START)
        if "call" not in message:
            guardian.become_command(message, {})
        run_call(message)


def close_all_but(kept: list[int]) -> None:
    start = 0
    for fd in (*kept, HIGHEST):
        if start < fd:  # closerange treats an empty range as all descriptors
            os.closerange(start, fd)
        start = fd + 1


def offer_to_die_first() -> None:
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    os.write(fd, FIRST_TO_DIE)
    os.close(fd)


def run_call(message: dict[str, Any]) -> NoReturn:
    """Runs one file operation. The exit code is 0, or the errno of the failure."""
    code = errno.EIO
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_IGN)  # report a file that may not grow as an error instead of dying
    try:
        os.chdir(message["cwd"])
        CALLS[message["call"]](message["path"], message["limit"])
        code = 0
    except OSError as error:
        code = error.errno or errno.EIO
    finally:
        os._exit(code)


def read(path: str, most: int) -> None:
    fd = plain_files.open_regular(path)
    left = most
    while data := os.read(fd, plain_files.CHUNK):
        left -= len(data)
        if left < 0:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        plain_files.write_all(1, data)


def write(path: str, _most: int) -> None:
    def copy(fd: int) -> None:
        while data := os.read(0, plain_files.CHUNK):
            plain_files.write_all(fd, data)

    plain_files.write(path, copy, lambda: None)


def real(_path: str, most: int) -> None:
    """Resolves NUL-terminated paths from standard input. Prints an empty result for a path that cannot be resolved."""
    given = bytearray()
    while data := os.read(0, plain_files.CHUNK):
        given += data
    answer = b"".join(plain_files.real(path) + b"\0" for path in bytes(given).split(b"\0")[:-1])
    if len(answer) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    plain_files.write_all(1, answer)


def list_files(path: str, most: int) -> None:
    """Prints size, modification time and path of each file, terminated by a NUL."""
    lines = bytearray()
    total = 0
    for name, status in plain_files.walk(path):
        line = f"{status.st_size} {status.st_mtime!r} ".encode() + os.fsencode(name) + b"\0"
        total += len(line)
        if total > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        lines += line
        if len(lines) > plain_files.CHUNK:
            plain_files.write_all(1, bytes(lines))
            lines.clear()
    plain_files.write_all(1, bytes(lines))


CALLS: dict[str, Callable[[str, int], None]] = {"read": read, "write": write, "list": list_files, "real": real}
