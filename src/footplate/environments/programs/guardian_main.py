"""The guardian process: starts the commands of one turn, and kills all their processes when the lease ends.

The worker starts this program with one end of a socket pair as its standard input. If the worker dies, the socket
closes; if the worker hangs or loses its network, it stops renewing the lease. In both cases the guardian kills all
processes of the turn, so it never blocks on the worker or on a command. The guardian imports few modules, because its
start-up time delays the first command of every turn.
"""

from __future__ import annotations

import _signal  # pyrefly: ignore[missing-import]  # the C part of `signal`, always loaded
import _socket
import fcntl
import marshal
import os
import resource
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from footplate.environments.programs import process_tree as tree
else:
    import process_tree as tree  # in the same directory: the package itself is not on sys.path here

suppress = tree.suppress

MAX_FDS = 64
TICK = 1.0  # poll does not count the time that the machine is suspended, but the lease does
STOP_TICK = 0.01
LENGTH_BYTES = 4
START_FAILED_STATUS = 126
TIOCSCTTY = 0x540E
"""Makes a terminal the controlling terminal of a session. Not from `termios`, whose import takes time."""


def main() -> None:
    _lease_id, deadline, mode = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    uid, gid = int(sys.argv[4]), int(sys.argv[5])
    for ignored in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        _signal.signal(ignored, _signal.SIG_IGN)  # only its socket and its lease end it
    connection = adopt_connection()
    if sys.argv[6:]:
        tree.stage_mounts(sys.argv[6], sys.argv[7:])
    tree.switch_user(uid, gid)
    init = tree.enter_namespace() if mode == "namespace" else None
    lifeline = tree.fork_under_watcher() if init is None else None
    guardian = GuardianProcess(connection, deadline, init=init, lifeline=lifeline)
    try:
        guardian.serve()
    finally:
        tree.end_namespace(init) if init is not None else tree.end_descendants()


def adopt_connection() -> _socket.socket:
    connection = _socket.socket(fileno=os.dup(0))
    connection.setblocking(False)
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    return connection


class GuardianProcess:
    """The guardian's event loop.

    Requests use the `marshal` format, because the worker is trusted and both ends run the same interpreter.
    Replies have only three fields of fixed size, because the init process of a sandbox sends them too, and the
    worker does not trust it.
    """

    def __init__(self, connection: _socket.socket, deadline: float, *, init: int | None, lifeline: int | None) -> None:
        self.connection = connection
        self.deadline = deadline
        self.init = init
        self.lifeline = lifeline
        self.inbox = bytearray()
        self.outbox = bytearray()
        self.fds: list[int] = []
        self.commands: dict[int, int] = {}
        self.leaders: dict[int, int] = {}
        self.stops: dict[int, tree.StopCommand | tree.EndOthers] = {}
        self.poll = select.poll()
        self.over = False

    def serve(self) -> None:
        """Runs until the socket closes, the lease expires, or the namespace or the lifeline ends."""
        wake, wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        poll = self.poll
        poll.register(wake, select.POLLIN)
        if self.lifeline is not None:
            poll.register(self.lifeline, select.POLLIN)
        self.send(b"R", value=int(self.init is not None))
        while not (self.over or self.expired()):
            poll.register(self.connection, select.POLLIN | (select.POLLOUT if self.outbox else 0))
            events = dict(poll.poll(self.wait_time() * 1000))
            if self.lifeline in events:
                return
            if wake in events:
                os.read(wake, 4096)
            self.report_ended()
            if self.connection.fileno() in events:
                self.receive()
            self.handle_other_events(events)
            self.advance_stops()
            self.flush()

    def expired(self) -> bool:
        return time.clock_gettime(time.CLOCK_BOOTTIME) >= self.deadline

    def wait_time(self) -> float:
        remaining = self.deadline - time.clock_gettime(time.CLOCK_BOOTTIME)
        return max(0.0, min(remaining, STOP_TICK if self.stops else TICK))

    def report_ended(self) -> None:
        for pid, code in tree.reap():
            if pid == self.init:
                self.over = True
            elif pid in self.commands:
                self.send(b"E", self.commands.pop(pid), code)
            else:
                self.handle_other_exit(pid)

    def handle_other_events(self, events: dict[int, int]) -> None:
        """Handles further descriptors that a subclass polls. The guardian itself has none."""

    def own_children(self) -> set[int]:
        """Returns child processes that are not commands, which a kill of all commands must spare."""
        return set()

    def handle_other_exit(self, pid: int) -> None:
        """Handles the exit of a child that is not a command, such as an adopted orphan."""

    def receive(self) -> None:
        """Reads from the worker and executes the complete messages. Executes nothing once the worker or the lease is
        gone.
        """
        try:
            data, ancillary, _, _ = self.connection.recvmsg(
                1 << 16, _socket.CMSG_SPACE(4 * MAX_FDS), _socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except ConnectionError:
            data, ancillary = b"", list[tuple[int, int, bytes]]()
        for level, kind, content in ancillary:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                self.fds.extend(memoryview(content[: len(content) // 4 * 4]).cast("i"))
        self.over = not data
        self.inbox += data
        while not self.over and (message := self.next_message()):
            if message["do"] == "renew":
                self.deadline = max(self.deadline, message["deadline"])
            elif self.expired():
                self.over = True
            else:
                self.execute_message(message)

    def execute_message(self, message: dict[str, Any]) -> None:
        if message["do"] == "spawn":
            self.spawn(message)
        elif message["do"] == "stop":
            self.stops[message["id"]] = tree.StopCommand(self.leaders.get(message["id"], -1), message["grace"])
        elif message["do"] == "calm":
            spared = {self.leaders[number] for number in message["spare"] if number in self.leaders}
            self.stops[message["id"]] = tree.EndOthers(spared | self.own_children())

    def next_message(self) -> dict[str, Any] | None:
        size = int.from_bytes(self.inbox[:LENGTH_BYTES], "big")
        if len(self.inbox) < LENGTH_BYTES + max(size, 1):
            return None
        message: dict[str, Any] = marshal.loads(self.inbox[LENGTH_BYTES : LENGTH_BYTES + size])  # noqa: S302 - the worker is trusted
        del self.inbox[: LENGTH_BYTES + size]
        return message

    def spawn(self, message: dict[str, Any]) -> None:
        targets = message["fds"]
        received, self.fds = self.fds[: len(targets)], self.fds[len(targets) :]
        try:
            child = os.fork()
        except OSError as error:
            child = -1
            report_start_failure(error, dict(zip(targets, received, strict=True)))
        if child == 0:
            self.run_child(message, dict(zip(targets, received, strict=True)))
        for fd in received:
            os.close(fd)
        self.send(b"S", message["id"], child)
        if child < 0:
            self.send(b"E", message["id"], START_FAILED_STATUS)
            return
        self.commands[child] = message["id"]
        self.leaders[message["id"]] = child

    def run_child(self, message: dict[str, Any], fds: dict[int, int]) -> NoReturn:
        """Turns the forked child into the command. Never returns."""
        exec_command(message, fds)

    def advance_stops(self) -> None:
        for command, stop in list(self.stops.items()):
            if stop.advance(self.init):
                self.report_ended()  # a caller that waits for the stop must get the exit code first
                del self.stops[command]
                self.leaders.pop(command, None)
                self.send(b"T", command)

    def send(self, kind: bytes, number: int = 0, value: int = 0) -> None:
        self.outbox += kind + number.to_bytes(4, "big") + value.to_bytes(4, "big", signed=True)

    def flush(self) -> None:
        """Sends as much as the socket accepts and never waits: a stopped worker reads nothing, and its lease must still
        end.
        """
        with suppress(BlockingIOError, ConnectionError):
            while self.outbox:
                del self.outbox[: self.connection.send(self.outbox)]


def report_start_failure(error: OSError, fds: dict[int, int]) -> None:
    """Writes the error to the command's standard error without blocking, because it may have no reader."""
    if 2 in fds:  # noqa: PLR2004 - standard error
        os.set_blocking(fds[2], False)
        with suppress(OSError):
            os.write(fds[2], f"cannot start the command: {error.strerror}\n".encode())


def reset_child(fds: dict[int, int]) -> None:
    """Prepares the forked child: its own session, the given descriptors at their numbers, and default
    signal handling.
    """
    os.setsid()
    # Duplicate all of them above the target numbers first, so that placing one cannot overwrite the next.
    moved = {target: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(fds) + 1) for target, fd in fds.items()}
    for target, fd in moved.items():
        os.dup2(fd, target, inheritable=True)
    _signal.set_wakeup_fd(-1)
    for number in range(1, _signal.NSIG):
        with suppress(OSError, ValueError):
            _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def set_limits(limits: dict[str, int]) -> None:
    """Sets resource limits, given by their names in the `resource` module. Children inherit them and cannot
    raise them.
    """
    for name, number in limits.items():
        kind = getattr(resource, name)
        before = resource.getrlimit(kind)[1]
        after = number if before == resource.RLIM_INFINITY else min(number, before)  # keep a stricter limit
        resource.setrlimit(kind, (after, after))


def exec_command(message: dict[str, Any], fds: dict[int, int]) -> NoReturn:
    """Executes the command in the forked child, with only the given descriptors. Exits with 127 if the program is
    missing.
    """
    try:
        if fds:
            reset_child(fds)
        if "limits" in message:
            set_limits(message["limits"])
        if message.get("terminal"):
            fcntl.ioctl(0, TIOCSCTTY, 0)
        os.chdir(message["cwd"])
        os.execvpe(message["argv"][0], message["argv"], message["env"])  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot run {message['argv'][0]!r}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    finally:
        os._exit(126)
