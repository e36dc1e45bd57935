"""Runs inside a sandbox as an agent's program would, makes each attempt, and reports its result.

It uses the standard library only. An attempt has a name, a way and arguments. The output is one JSON object: for each
name the bytes that came back, or the reason for the failure.
"""

import contextlib
import ctypes
import http.client
import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

PROXY = ("127.0.0.1", 3128)
PATIENCE = 3.0


def read_all(connection: socket.socket) -> str:
    connection.settimeout(PATIENCE)
    heard = b""
    with contextlib.suppress(TimeoutError):
        while piece := connection.recv(65536):
            heard += piece
    return heard.decode("latin-1")


def through_proxy(head: str, then: str = "") -> str:
    """Sends raw bytes to the allow-list proxy and, after a 200, `then` through the tunnel."""
    with socket.create_connection(PROXY, PATIENCE) as connection:
        connection.sendall(head.encode("latin-1"))
        if not then:
            return read_all(connection)
        connection.settimeout(PATIENCE)
        response = connection.recv(65536).decode("latin-1")
        if " 200 " not in response.split("\r\n")[0]:
            return response
        connection.sendall(then.encode("latin-1"))
        return read_all(connection)


def get(authority: str, path: str) -> str:
    return through_proxy(f"GET http://{authority}/{path} HTTP/1.1\r\nhost: {authority}\r\n\r\n")


def connect(authority: str, path: str) -> str:
    then = f"GET /{path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n"
    return through_proxy(f"CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n\r\n", then)


def client(url: str, **variables: str) -> str:
    """Uses a standard client that follows redirects and takes its proxy from the environment."""
    os.environ.update({"http_proxy": os.environ.get("HTTP_PROXY", ""), **variables})
    with urllib.request.urlopen(url, timeout=PATIENCE) as response:
        return str(response.read().decode("latin-1"))


def without_proxy(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=PATIENCE) as response:
        return str(response.read().decode("latin-1"))


def curl(*arguments: str) -> str:
    done = subprocess.run(["curl", "-sS", "-m", "3", *arguments], capture_output=True, check=False, timeout=10)
    if done.returncode:
        raise OSError(done.stderr.decode().strip())
    return done.stdout.decode("latin-1")


def tcp(host: str, port: int, path: str) -> str:
    with socket.create_connection((host, port), PATIENCE) as connection:
        connection.sendall(f"GET /{path} HTTP/1.0\r\n\r\n".encode())
        return read_all(connection)


def udp(host: str, port: int, text: str) -> str:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as connection:
        connection.settimeout(1)
        connection.sendto(text.encode(), (host, port))
        return connection.recv(1000).decode("latin-1")


def dns(host: str, port: int, name: str) -> str:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00\x00\x01\x00\x01"
    return udp(host, port, question.decode("latin-1"))


def name_service(name: str) -> str:
    return str(socket.getaddrinfo(name, 80))


def ping(host: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as connection:
        connection.settimeout(1)
        connection.sendto(b"\x08\x00\xf7\xff\x00\x00\x00\x00", (host, 0))
        return connection.recv(100).hex()


def abstract(name: str, path: str) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + name)
        connection.sendall(f"GET /{path} HTTP/1.0\r\n\r\n".encode())
        return read_all(connection)


def family(number: int) -> str:
    with socket.socket(number, socket.SOCK_STREAM if number == 40 else socket.SOCK_RAW) as connection:
        return f"a socket: {connection}"


def unshare_network() -> str:
    """Enters another network namespace, which it could configure."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000 | 0x10000000):
        raise OSError(ctypes.get_errno(), "unshare")
    return "unshared"


def interfaces() -> str:
    with open("/proc/net/dev") as table:  # noqa: PTH123
        return ",".join(sorted(line.split(":")[0].strip() for line in table if ":" in line))


def unix_socket(name: str, provider: str, token: str) -> str:
    connection = http.client.HTTPConnection("model")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(f"/run/footplate-proxy/{name}")
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "[[script:hi]]"}]}
    connection.request("POST", f"/{provider}/v1/messages", json.dumps(body), {"x-api-key": token})
    response = connection.getresponse()
    return f"{response.status} {response.read().decode()}"


WAYS: dict[str, Callable[..., str]] = {
    way.__name__: way
    for way in (
        get, connect, client, without_proxy, curl, tcp, udp, dns, name_service, ping, abstract, family,
        unshare_network, interfaces, unix_socket, through_proxy,
    )
}  # fmt: skip


def make_attempt(way: str, arguments: list[Any], variables: dict[str, str]) -> dict[str, str]:
    try:
        return {"heard": WAYS[way](*arguments, **variables)}
    except (OSError, ValueError, http.client.HTTPException) as error:
        body = error.read().decode("latin-1") if isinstance(error, urllib.error.HTTPError) else ""
        return {"failed": f"{type(error).__name__}: {error} {body}".strip()}


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    print(json.dumps({name: make_attempt(*rest) for name, *rest in given}), flush=True)
