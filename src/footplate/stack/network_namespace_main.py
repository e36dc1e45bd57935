"""Runs a server in its own network namespace, reachable through one unix socket that only its owner can open.

    python network_namespace_main.py PARENT SOCKET PORT COMMAND…

The program starts COMMAND in the namespace, forwards connections on SOCKET to 127.0.0.1:PORT there, and exits with
COMMAND's exit code. It ends when its parent process (pid PARENT) ends, and the kernel kills COMMAND when the program
ends. Without arguments, the program only enters a namespace: exit code 0 means that the machine permits it. It runs in
an isolated interpreter and imports no other Footplate module.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from typing import Final, cast

import uvloop

_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_PR_SET_PDEATHSIG: Final = 1
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1
_MAX_HEAD_BYTES: Final = 4096
_ESTABLISHED: Final = b"HTTP/1.1 200 OK\r\n\r\n"
_LOOPBACK: Final = "127.0.0.1"
_ORPHANED_EXIT_CODE: Final = 125

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    if not sys.argv[1:]:
        enter_namespace()
        return
    parent, path, port, command = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    enter_namespace()
    # Entering a user namespace may clear the death signal that the launcher set.
    end_with_parent(parent, signal.SIGTERM)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(serve(path, port, command))
    sys.exit(code if code >= 0 else 128 - code)


def enter_namespace() -> None:
    """Enters a network namespace. Only a process without the capability, as root in many containers, needs a user
    namespace too.
    """
    if _libc.unshare(_CLONE_NEWNET) != 0:
        uid, gid = os.geteuid(), os.getegid()
        if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            sys.exit(f"Cannot create a network namespace: {reason}.")
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - pathlib takes time to import
                file.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def end_with_parent(parent: int, signal_number: int) -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(_ORPHANED_EXIT_CODE)


async def serve(path: str, port: int, command: list[str]) -> int:
    loop = asyncio.get_running_loop()
    own = os.getpid()
    server = await asyncio.create_subprocess_exec(
        *command,
        preexec_fn=lambda: end_with_parent(own, signal.SIGKILL),
    )

    def end_server() -> None:
        with suppress(ProcessLookupError):
            server.terminate()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end_server)
    listening = await loop.create_unix_server(lambda: ClientHalf(port), sock=private_listener(path), backlog=512)
    try:
        return await server.wait()
    finally:
        listening.close()


def private_listener(path: str) -> socket.socket:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - as above
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    return listener


class ForwardingHalf(asyncio.Protocol):
    """One half of a forwarded connection: sends its data to the other half, and pauses when that one is slower."""

    transport: asyncio.Transport
    peer: ForwardingHalf | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop has its own class

    def data_received(self, data: bytes) -> None:
        assert self.peer is not None
        self.peer.transport.write(data)

    def eof_received(self) -> bool:
        if self.peer is not None and self.peer.transport.can_write_eof():
            self.peer.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        if self.peer is not None:
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.peer is not None:
            self.peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        if self.peer is not None:
            self.peer.transport.close()


class ClientHalf(ForwardingHalf):
    """The client's half: after its `CONNECT` request it is joined with the server's half. Temporal's client sends
    `CONNECT` on a unix socket; the requested target is ignored.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._head = b""
        self._connecting: asyncio.Task[None] | None = None

    def data_received(self, data: bytes) -> None:
        if self.peer is not None:
            self.peer.transport.write(data)
            return
        self._head += data
        if b"\r\n\r\n" in self._head and self._connecting is None:
            self.transport.pause_reading()
            self._connecting = asyncio.create_task(self._connect_to_server())
        elif len(self._head) > _MAX_HEAD_BYTES:
            self.transport.abort()

    def eof_received(self) -> bool:
        return super().eof_received() if self.peer is not None else False

    async def _connect_to_server(self) -> None:
        head, _, rest = self._head.partition(b"\r\n\r\n")
        if not head.startswith(b"CONNECT "):
            self.transport.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            self.transport.close()
            return
        try:
            await asyncio.get_running_loop().create_connection(lambda: ServerHalf(self, rest), _LOOPBACK, self._port)
        except OSError:
            self.transport.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            self.transport.close()


class ServerHalf(ForwardingHalf):
    """The server's half. The server may send first, so both halves are joined as soon as it is connected."""

    def __init__(self, client: ClientHalf, rest: bytes) -> None:
        self.peer = client
        self._rest = rest

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.peer is not None
        client = self.peer.transport
        if client.is_closing():
            self.transport.close()
            return
        self.peer.peer = self
        client.write(_ESTABLISHED)
        self.transport.write(self._rest)
        client.resume_reading()


if __name__ == "__main__":
    main()
