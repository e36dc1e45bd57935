"""Ports on a sandbox's own loopback that lead to sockets of ours, for clients that know no unix sockets.

Part of process 1 inside (`inside_main`). It listens; a child of it carries the bytes, and is only made when somebody
connects. The child has no right that the agent's commands lack: who kills it harms himself, and the next one who
connects gets another.
"""

from __future__ import annotations

import _socket
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from footplate.environments import guardian_tree as tree
else:
    import guardian_tree as tree

suppress = tree.suppress

LOOPBACK = "127.0.0.1"
BACKLOG = 64
PIECE = 1 << 16
MOST = 512
"""Connections at a time; the others wait in the queue."""


def listen(doors: list[tuple[int, str]]) -> dict[int, tuple[_socket.socket, str]]:
    """By descriptor: the listening socket, and the path that it leads to."""
    found = {}
    for port, path in doors:
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
        listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        # For all that it accepts: a model speaks in small pieces, and none may wait until the last is acknowledged.
        listener.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(BACKLOG)
        found[listener.fileno()] = (listener, path)
    return found


def accept(listener: _socket.socket) -> _socket.socket | None:
    with suppress(OSError):
        fd, _ = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - the C part has no other
        connection = _socket.socket(fileno=fd)
        connection.setblocking(False)
        return connection
    return None


def connect(path: str) -> _socket.socket | None:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        connection.settimeout(5)
        connection.connect(path)
        connection.setblocking(False)
    except OSError:
        connection.close()
        return None
    return connection


class Way:
    """Bytes from one socket to the other; never more of them at hand than one piece."""

    def __init__(self, source: _socket.socket, target: _socket.socket) -> None:
        self.source = source
        self.target = target
        self.piece = b""
        self.ended = False
        """Nothing more comes from the source."""
        self.broken = False
        """The target takes nothing any more: the rest is read and dropped, so that the source gets to hear why."""

    def move(self) -> None:
        with suppress(BlockingIOError):
            while self.send() and not self.ended:
                self.receive()

    def send(self) -> bool:
        try:
            while self.piece and not self.broken:
                self.piece = self.piece[self.target.send(self.piece) :]
        except BlockingIOError:
            return False
        except OSError:
            self.broken = True
        self.piece = b""
        return True

    def receive(self) -> None:
        try:
            self.piece = self.source.recv(PIECE)
        except BlockingIOError:
            raise
        except OSError:
            self.piece = b""
        if not self.piece:
            self.ended = True
            with suppress(OSError):
                self.target.shutdown(_socket.SHUT_WR)

    @property
    def delivered(self) -> bool:
        return self.ended and not self.piece


class Carrier:
    def __init__(self, listeners: dict[int, tuple[_socket.socket, str]]) -> None:
        self.listeners = listeners
        self.ways: dict[int, tuple[Way, Way]] = {}
        """By the descriptors of both ends: there and back."""
        self.poll = select.poll()

    def serve(self) -> None:
        while True:
            for fd in self.listeners:
                self.poll.register(fd, select.POLLIN if len(self.ways) < MOST else 0)
            for fd, _ in self.poll.poll():
                if fd in self.listeners:
                    self.welcome(*self.listeners[fd])
                elif fd in self.ways:
                    self.carry(self.ways[fd])

    def welcome(self, listener: _socket.socket, path: str) -> None:
        client = accept(listener)
        if client is None:
            return
        door = connect(path)
        if door is None:
            client.close()
            return
        pair = (Way(client, door), Way(door, client))
        self.ways[client.fileno()] = self.ways[door.fileno()] = pair
        self.carry(pair)

    def carry(self, pair: tuple[Way, Way]) -> None:
        there, back = pair
        there.move()
        back.move()
        if (there.delivered or there.broken) and (back.delivered or back.broken):
            for way in pair:
                self.forget(way)
                del self.ways[way.source.fileno()]
            for way in pair:
                way.source.close()
            return
        for way, other in ((there, back), (back, there)):
            wanted = (0 if way.ended or way.piece else select.POLLIN) | (select.POLLOUT if other.piece else 0)
            if wanted:
                self.poll.register(way.source, wanted)
            else:  # or its hanging up would be reported again and again
                self.forget(way)

    def forget(self, way: Way) -> None:
        with suppress(KeyError):
            self.poll.unregister(way.source)


def carry(listeners: dict[int, tuple[_socket.socket, str]]) -> NoReturn:
    """In the child. It never returns."""
    try:
        Carrier(listeners).serve()
    finally:
        os._exit(1)
