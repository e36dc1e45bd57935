"""The attack of another local user. It runs as that user with the system's Python and only the standard library.

    python3 other_user_main.py < {"ports": […], "pids": […], "files": […], "sockets": […], "secrets": […]}

It prints JSON: the number of tries, and what was achieved. The ports are those that any user finds in /proc/net/tcp.
"""

import hashlib
import json
import os
import socket
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TIMEOUT = 5.0
WAIT = 0.4
GUESSES = ("", "none", "footplate")
GRPC = "/temporal.api.workflowservice.v1.WorkflowService/"
TEMPORAL_CALLS = ("ListNamespaces", "ListWorkflowExecutions", "ListSchedules", "PatchSchedule", "GetSystemInfo")
REDIS_CALLS = (
    *(b"PING\r\n", b"KEYS *\r\n", b"FLUSHALL\r\n", b"CONFIG GET *\r\n"),
    *(b"AUTH footplate\r\nPING\r\n", b"SHUTDOWN NOSAVE\r\n"),
)
HTTP_CALLS = (
    ("GET", "/metrics", ""),
    ("GET", "/", ""),
    ("GET", "/v1/agents", ""),
    ("GET", "/v1/sessions", ""),
    ("POST", "/v1/agents", '{"name": "theirs", "model": "m"}'),
    ("POST", "/v1/sessions", "{}"),
    ("GET", "/v1/audit", ""),
    ("GET", "/v1/models", ""),
    ("POST", "/v1/messages", '{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}'),
    ("POST", "/anthropic/v1/messages", '{"model": "m", "max_tokens": 9, "messages": []}'),
    ("GET", "/_control/requests", ""),
    ("DELETE", "/_control/requests", ""),
    ("PUT", "/_control/scripts/default", '{"replies": [[{"text": "theirs"}]]}'),
    ("GET", "/api/v1/namespaces", ""),
    ("GET", "/api/v1/namespaces/default/workflows", ""),
    ("GET", "/api/v1/namespaces/default/schedules", ""),
    ("POST", "/api/v1/namespaces/default/schedules/sweep%2Ffootplate/patch", '{"patch": {"pause": "theirs"}}'),
)


class Attack:
    def __init__(self, given: "dict[str, Any]") -> None:
        self.given = given
        self.tried = 0
        self.achieved: list[str] = []

    def note(self, what: str, result: "str | None") -> None:
        self.tried += 1
        if result:
            self.achieved.append(f"{what}: {result}")

    def attack_port(self, port: int) -> None:
        for method, path, body in HTTP_CALLS:
            for key in GUESSES:
                self.note(f"{method} {path} at port {port}", ask_http(port, method, path, body, key))
        for name in TEMPORAL_CALLS:
            self.note(f"gRPC {name} at port {port}", ask_grpc(port, GRPC + name))
        for user in ("footplate", "postgres", "root"):
            self.note(f"PostgreSQL as {user} at port {port}", ask_postgres(port, user))
        for command in REDIS_CALLS:
            self.note(f"Redis {command!r} at port {port}", ask_redis(port, command))

    def attack_files(self) -> None:
        for path in self.given["files"]:
            self.note(f"reading {path}", read_file(path))
            self.note(f"writing {path}", write_file(path))
        for path in self.given["sockets"]:
            self.note(f"connecting to {path}", connect_unix(path))

    def attack_process(self, pid: int) -> None:
        self.note(f"signalling {pid}", send_signal(pid))
        for name in ("environ", "mem", "ns/net", "fd", "cwd", "maps"):
            self.note(f"reading /proc/{pid}/{name}", read_process(pid, name))
        self.note(f"the command line of {pid}", find_secret(pid, self.given["secrets"]))


def main() -> None:
    attack = Attack(json.load(sys.stdin))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(attack.attack_port, attack.given["ports"]))
    at_ports = attack.tried
    attack.attack_files()
    for pid in attack.given["pids"]:
        attack.attack_process(pid)
    print(json.dumps({"user": os.geteuid(), "tried": attack.tried, "at_ports": at_ports, "achieved": attack.achieved}))


def exchange(port: int, data: bytes) -> bytes:
    response = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as client:
            client.settimeout(WAIT)
            client.sendall(data)
            while piece := client.recv(65536):
                response += piece
                if len(response) > 1_000_000:
                    break
    except OSError:
        pass
    return response


def ask_http(port: int, method: str, path: str, body: str, key: str) -> "str | None":
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    )
    keys = f"x-api-key: {key}\r\n" if key else ""
    response = exchange(port, f"{head}{keys}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    line = response.split(b"\r\n", 1)[0].decode("latin-1")
    return line if line.startswith("HTTP/") and line.split()[1:2] and line.split()[1].startswith("2") else None


def ask_grpc(port: int, path: str) -> "str | None":
    def literal(name: str, value: str) -> bytes:
        return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()

    def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    headers = b"".join(
        literal(name, value)
        for name, value in (
            *((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", f"127.0.0.1:{port}")),
            *(("content-type", "application/grpc"), ("te", "trailers")),
        )
    )
    request = b"\x0a\x07default"  # namespace, in each of these messages
    data = b"\x00" + struct.pack(">I", len(request)) + request
    sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, headers) + frame(0, 1, 1, data)
    response = exchange(port, sent)
    while len(response) >= 9:
        length, kind = int.from_bytes(response[:3], "big"), response[3]
        if kind == 1 and int.from_bytes(response[5:9], "big") == 1:
            return "a gRPC server responded"
        if kind > 9:
            return None
        response = response[9 + length :]
    return None


def ask_postgres(port: int, user: str) -> "str | None":
    body = struct.pack(">I", 196608) + f"user\0{user}\0database\0footplate\0\0".encode()
    response = exchange(port, struct.pack(">I", len(body) + 4) + body)
    return "connected without a password" if response[:1] == b"R" and response[5:9] == b"\0\0\0\0" else None


def ask_redis(port: int, command: bytes) -> "str | None":
    response = exchange(port, command)
    return response[:60].decode("latin-1") if response[:1] in (b"+", b"*", b":", b"$") else None


def read_file(path: str) -> "str | None":
    try:
        with Path(path).open("rb") as file:
            file.read(1)
    except OSError:
        return None
    return "readable"


def write_file(path: str) -> "str | None":
    try:
        with Path(path).open("ab"):
            pass
    except OSError:
        return None
    return "writable"


def connect_unix(path: str) -> "str | None":
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except OSError:
            return None
    return "connected"


def send_signal(pid: int) -> "str | None":
    try:
        os.kill(pid, 0)  # signal 0 only checks the permission
    except OSError:
        return None
    return "it accepts signals"


def read_process(pid: int, name: str) -> "str | None":
    path = f"/proc/{pid}/{name}"
    try:
        if name in ("ns/net", "cwd"):
            Path(path).readlink()
        elif name == "fd":
            list(Path(path).iterdir())
        else:
            with Path(path).open("rb") as file:
                if name != "mem" and not file.read(1):
                    return None
    except OSError:
        return None
    return "readable"


def find_secret(pid: int, digests: "list[str]") -> "str | None":
    try:
        with Path(f"/proc/{pid}/cmdline").open("rb") as file:
            arguments = file.read().split(b"\0")
    except OSError:
        return None
    return "has a secret" if any(hashlib.sha256(argument).hexdigest() in digests for argument in arguments) else None


if __name__ == "__main__":
    main()
