"""Forwards loopback ports in a sandbox or container to unix sockets of the worker, for clients that support only TCP.

The init process listens on the ports. At the first connection, the init process forks a child that forwards the bytes.
The child has no more privileges than the agent's commands. If a command kills the child, the next connection starts a
new one.
"""

from __future__ import annotations

import _socket
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from footplate.environments.programs import process_tree as tree
else:
    import process_tree as tree

suppress = tree.suppress

LOOPBACK = "127.0.0.1"
BACKLOG = 64
CHUNK_BYTES = 1 << 16
MAX_CONNECTIONS = 512
"""The maximum number of concurrent connections. Others wait in the backlog."""


def listen(targets: list[tuple[int, str]]) -> dict[int, tuple[_socket.socket, str]]:
    """Returns the listening sockets by descriptor, each with the path that it forwards to."""
    found = {}
    for port, path in targets:
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
        listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it. A model streams small chunks, and none may wait for an acknowledgement.
        listener.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(BACKLOG)
        found[listener.fileno()] = (listener, path)
    return found


def accept(listener: _socket.socket) -> _socket.socket | None:
    with suppress(OSError):
        fd, _ = listener._accept()  # pyrefly: ignore[missing-attribute]  # noqa: SLF001 - the C module has no public accept
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


class OneWayForwarder:
    """Forwards bytes from one socket to another and buffers at most one chunk."""

    def __init__(self, source: _socket.socket, target: _socket.socket) -> None:
        self.source = source
        self.target = target
        self.chunk = b""
        self.ended = False
        """The source has reached its end."""
        self.broken = False
        """The target accepts no more data. The rest is read and dropped, so that the source still receives the
        response.
        """

    def move(self) -> None:
        with suppress(BlockingIOError):
            while self.send() and not self.ended:
                self.receive()

    def send(self) -> bool:
        try:
            while self.chunk and not self.broken:
                self.chunk = self.chunk[self.target.send(self.chunk) :]
        except BlockingIOError:
            return False
        except OSError:
            self.broken = True
        self.chunk = b""
        return True

    def receive(self) -> None:
        try:
            self.chunk = self.source.recv(CHUNK_BYTES)
        except BlockingIOError:
            raise
        except OSError:
            self.chunk = b""
        if not self.chunk:
            self.ended = True
            with suppress(OSError):
                self.target.shutdown(_socket.SHUT_WR)

    @property
    def is_delivered(self) -> bool:
        return self.ended and not self.chunk


class Forwarder:
    def __init__(self, listeners: dict[int, tuple[_socket.socket, str]]) -> None:
        self.listeners = listeners
        self.directions: dict[int, tuple[OneWayForwarder, OneWayForwarder]] = {}
        """The two directions of a connection, by the descriptors of both ends."""
        self.poll = select.poll()

    def serve(self) -> None:
        while True:
            for fd in self.listeners:
                self.poll.register(fd, select.POLLIN if len(self.directions) < MAX_CONNECTIONS else 0)
            for fd, _ in self.poll.poll():
                if fd in self.listeners:
                    self.accept_client(*self.listeners[fd])
                elif fd in self.directions:
                    self.forward(self.directions[fd])

    def accept_client(self, listener: _socket.socket, path: str) -> None:
        client = accept(listener)
        if client is None:
            return
        upstream = connect(path)
        if upstream is None:
            client.close()
            return
        pair = (OneWayForwarder(client, upstream), OneWayForwarder(upstream, client))
        self.directions[client.fileno()] = self.directions[upstream.fileno()] = pair
        self.forward(pair)

    def forward(self, pair: tuple[OneWayForwarder, OneWayForwarder]) -> None:
        outbound, inbound = pair
        outbound.move()
        inbound.move()
        if (outbound.is_delivered or outbound.broken) and (inbound.is_delivered or inbound.broken):
            for direction in pair:
                self.unregister(direction)
                del self.directions[direction.source.fileno()]
            for direction in pair:
                direction.source.close()
            return
        for direction, other in ((outbound, inbound), (inbound, outbound)):
            wanted = (0 if direction.ended or direction.chunk else select.POLLIN) | (
                select.POLLOUT if other.chunk else 0
            )
            if wanted:
                self.poll.register(direction.source, wanted)
            else:  # otherwise poll would report its hang-up repeatedly
                self.unregister(direction)

    def unregister(self, direction: OneWayForwarder) -> None:
        with suppress(KeyError):
            self.poll.unregister(direction.source)


# pyrefly: ignore[bad-return]  # `finally` exits
def run_forwarder(listeners: dict[int, tuple[_socket.socket, str]]) -> NoReturn:
    """Runs the forwarder in the forked child. Never returns."""
    try:
        Forwarder(listeners).serve()
    finally:
        os._exit(1)
