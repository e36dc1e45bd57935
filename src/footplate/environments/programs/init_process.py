"""The init process of a sandbox or container: starts the turn's commands inside, and reads and writes files there.

The guardian is a process on the host. It ends the whole sandbox or container when the worker dies, or when the lease
expires: a deadline that the worker must renew. The init process runs the same event loop as the guardian, but without a
lease. It has no more privileges than the agent's commands.

In a sandbox, the init process is process 1 of the pid namespace. Commands therefore cannot signal it, and all commands
die with it.
"""

from __future__ import annotations

import _signal  # pyrefly: ignore[missing-import]  # the C part of `signal`, always loaded
import errno
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from footplate.environments.programs import guardian_main as guardian
    from footplate.environments.programs import loopback_port_forwarder, safe_file_access
    from footplate.environments.programs import process_tree as tree
else:
    import guardian_main as guardian
    import loopback_port_forwarder
    import process_tree as tree
    import safe_file_access

MAX_FD = 1 << 20
COMMAND_OOM_SCORE = b"500"
"""The OOM score of commands. The kernel kills them before the init process, which can still report it."""


def main() -> None:
    tree.set_dumpable(0)
    ignore_sigint()
    close_all_except([0, 1, 2, tree.proc])
    InitProcess(guardian.adopt_connection(), float("inf"), init=None, lifeline=None).run(sys.argv[1:])


def ignore_sigint() -> None:
    """Ignores SIGINT, the only signal that Python would let through to process 1."""
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


class InitProcess(guardian.GuardianProcess):
    """Serves the worker's requests inside a sandbox or container.

    It is not dumpable, so no command can trace it. A command that took control of it could only report false
    results to the worker.
    """

    listeners: dict[int, Any]
    """Listening sockets by descriptor, each with the path that it forwards to."""
    forwarder_pid: int | None = None
    """The pid of the child that forwards the bytes, once a client has connected."""

    def run(self, arguments: list[str]) -> NoReturn:
        """Serves until the end. `arguments` contains resource limits by name, and socket paths by the port that
        leads to them.
        """
        entries = [entry.split("=", 1) for entry in arguments]
        guardian.set_limits({name: int(number) for name, number in entries if not name.isdigit()})
        self.open_ports([(int(port), path) for port, path in entries if port.isdigit()])
        self.serve()
        os._exit(0)

    def open_ports(self, targets: list[tuple[int, str]]) -> None:
        self.listeners = loopback_port_forwarder.listen(targets)
        self.watch_ports(select.POLLIN)

    def watch_ports(self, events: int) -> None:
        for fd in self.listeners:
            self.poll.register(fd, events)

    def handle_other_events(self, events: dict[int, int]) -> None:
        connecting = [fd for fd in self.listeners if events.get(fd)]
        if not connecting or self.forwarder_pid is not None:
            return
        try:
            self.forwarder_pid = os.fork()
        except OSError:
            for fd in connecting:  # reject them, otherwise poll would return immediately without end
                loopback_port_forwarder.accept(self.listeners[fd][0])
            return
        if self.forwarder_pid == 0:
            self.run_forwarder()
        self.watch_ports(0)

    def run_forwarder(self) -> NoReturn:
        try:
            guardian.reset_child({})
            close_all_except(sorted(self.listeners))
            loopback_port_forwarder.run_forwarder(self.listeners)
        finally:
            os._exit(guardian.START_FAILED_STATUS)

    def own_children(self) -> set[int]:
        return set() if self.forwarder_pid is None else {self.forwarder_pid}

    def handle_other_exit(self, pid: int) -> None:
        if pid == self.forwarder_pid:
            self.forwarder_pid = None
            self.watch_ports(select.POLLIN)

    def run_child(self, message: dict[str, Any], fds: dict[int, int]) -> NoReturn:
        try:
            guardian.reset_child(fds)
            close_all_except(sorted(fds))
            # Only now, when no memory or descriptor of the init process is exposed.
            tree.set_dumpable(1)
            raise_oom_score()
        except BaseException:  # noqa: BLE001 - a child that returned would run the init loop a second time
            os._exit(guardian.START_FAILED_STATUS)
        if "call" not in message:
            guardian.exec_command(message, {})
        run_operation(message)


def close_all_except(spared: list[int]) -> None:
    start = 0
    for fd in (*spared, MAX_FD):
        if start < fd:  # closerange treats an empty range as all descriptors
            os.closerange(start, fd)
        start = fd + 1


def raise_oom_score() -> None:
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    os.write(fd, COMMAND_OOM_SCORE)
    os.close(fd)


def run_operation(message: dict[str, Any]) -> NoReturn:  # pyrefly: ignore[bad-return]  # `finally` exits
    """Runs one file operation. The exit code is 0, or the errno of the failure."""
    code = errno.EIO
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_IGN)  # report a file that may not grow as an error instead of dying
    try:
        os.chdir(message["cwd"])
        OPERATIONS[message["call"]](message["path"], message["limit"])
        code = 0
    except OSError as error:
        code = error.errno or errno.EIO
    finally:
        os._exit(code)


def read(path: str, max_bytes: int) -> None:
    fd = safe_file_access.open_regular(path)
    remaining = max_bytes
    while data := os.read(fd, safe_file_access.CHUNK):
        remaining -= len(data)
        if remaining < 0:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        safe_file_access.write_all(1, data)


def write(path: str, _max_bytes: int) -> None:
    def copy(fd: int) -> None:
        while data := os.read(0, safe_file_access.CHUNK):
            safe_file_access.write_all(fd, data)

    safe_file_access.replace_file(path, copy, lambda: None)


def resolve_paths(_path: str, max_bytes: int) -> None:
    """Resolves NUL-terminated paths from standard input. Prints an empty result for a path that cannot be resolved."""
    received = bytearray()
    while data := os.read(0, safe_file_access.CHUNK):
        received += data
    output = b"".join(safe_file_access.resolve_path(path) + b"\0" for path in bytes(received).split(b"\0")[:-1])
    if len(output) > max_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    safe_file_access.write_all(1, output)


def list_files(path: str, max_bytes: int) -> None:
    """Prints size, modification time and path of each file, terminated by a NUL."""
    lines = bytearray()
    total = 0
    for name, status in safe_file_access.walk_files(path):
        line = f"{status.st_size} {status.st_mtime!r} ".encode() + os.fsencode(name) + b"\0"
        total += len(line)
        if total > max_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        lines += line
        if len(lines) > safe_file_access.CHUNK:
            safe_file_access.write_all(1, bytes(lines))
            lines.clear()
    safe_file_access.write_all(1, bytes(lines))


OPERATIONS: dict[str, Callable[[str, int], None]] = {
    "read": read,
    "write": write,
    "list": list_files,
    "real": resolve_paths,
}
