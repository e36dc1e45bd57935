"""The first process of a sandbox: it starts the turn's commands there and reads and writes the turn's files.

bubblewrap makes the boundary and then becomes this program, which has no right that the agent's commands lack. It is
process 1 of its pid namespace: none of them can signal it, and all of them are gone when it is. It is not dumpable:
none of them can trace it. If one took it over all the same, it could lie to the worker about exit codes, and no more.

It is the guardian's own loop, without a lease: the guardian outside holds that, and kills what bubblewrap started.
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
"""When memory runs out, commands go before the process that can tell of it."""


def main() -> None:
    tree.set_dumpable(0)
    deafen()
    close_all_but([0, 1, 2, tree.proc])
    Inside(guardian.take_connection(), float("inf"), init=None, lifeline=None).live(sys.argv[1:])


def deafen() -> None:
    """To the one signal that Python would let through to process 1."""
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


class Inside(guardian.Guardian):
    doors: dict[int, Any]
    """Listening sockets by their descriptors, with where they lead."""
    carrier: int | None = None
    """The child that carries their bytes, once somebody has connected."""

    def live(self, given: list[str]) -> NoReturn:
        """`given`: limits of processes by their names, doors by the ports that lead to them."""
        entries = [entry.split("=", 1) for entry in given]
        guardian.set_limits({name: int(number) for name, number in entries if not name.isdigit()})
        self.open_doors([(int(port), path) for port, path in entries if port.isdigit()])
        self.serve()
        os._exit(0)

    def open_doors(self, doors: list[tuple[int, str]]) -> None:
        self.doors = inside_doors.listen(doors)
        self.watch_doors(select.POLLIN)

    def watch_doors(self, events: int) -> None:
        for fd in self.doors:
            self.poll.register(fd, events)

    def attend(self, events: dict[int, int]) -> None:
        knocked = [fd for fd in self.doors if events.get(fd)]
        if not knocked or self.carrier is not None:
            return
        try:
            self.carrier = os.fork()
        except OSError:
            for fd in knocked:  # turned away, or they would be waited for without a pause
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
            # Only now, when nothing of this process is left to be seen.
            tree.set_dumpable(1)
            offer_to_die_first()
        except BaseException:  # noqa: BLE001 - a child that returned would be a second process 1
            os._exit(guardian.NO_START)
        if "call" not in message:
            guardian.become_command(message, {})
        run_call(message)


def close_all_but(kept: list[int]) -> None:
    start = 0
    for fd in (*kept, HIGHEST):
        if start < fd:  # an empty range would be taken for all there is
            os.closerange(start, fd)
        start = fd + 1


def offer_to_die_first() -> None:
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    os.write(fd, FIRST_TO_DIE)
    os.close(fd)


def run_call(message: dict[str, Any]) -> NoReturn:
    """The exit code is 0 or the number of the system's error."""
    code = errno.EIO
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_IGN)  # a file that may not grow is an error to tell, not an end
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
    """Of each path that comes, with a NUL behind it; nothing where it cannot be told."""
    given = bytearray()
    while data := os.read(0, plain_files.CHUNK):
        given += data
    answer = b"".join(plain_files.real(path) + b"\0" for path in bytes(given).split(b"\0")[:-1])
    if len(answer) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    plain_files.write_all(1, answer)


def list_files(path: str, most: int) -> None:
    """Size, time and path, with a NUL behind each."""
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
