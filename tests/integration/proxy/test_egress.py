"""The allow-list proxy, called directly: allowed and refused requests, and the address that it connects to."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from tests.integration.proxy.conftest import Provider

from footplate.domain.network.address_policy import Address, AddressPolicy
from footplate.domain.network.command_network_access import Network
from footplate.proxy.allow_list_proxy import AllowListProxy

pytestmark = pytest.mark.timing

HEAD = "HTTP/1.1\r\nhost: whatever.test\r\n"


class EgressSocket:
    def __init__(self, path: Path, port: int) -> None:
        self.path = path
        self.port = port
        self.looked_up: list[str] = []

    async def send(self, text: str | bytes, *, then: bytes = b"") -> bytes:
        reader, writer = await asyncio.open_unix_connection(self.path)
        writer.write(text.encode() if isinstance(text, str) else text)
        async with asyncio.timeout(10):
            received = b""
            if then:
                received = await reader.readuntil(b"\r\n\r\n")
                writer.write(then)
            received += await reader.read()
        writer.close()
        return received


@pytest.fixture
async def egress(tmp_path: Path, provider: Provider) -> AsyncIterator[EgressSocket]:
    """`allowed.test` and `inside.test` are listed. Both resolve to loopback, which is allowed only for the first."""
    port = int(provider.url.rpartition(":")[2])
    egress = EgressSocket(tmp_path / "egress.sock", port)

    async def resolve(host: str, _port: int) -> Sequence[Address]:
        egress.looked_up.append(host)
        if not host.endswith(".test"):
            raise socket.gaierror
        return [ip_address("127.0.0.1")]

    network = Network.allow(
        [f"{name}:{port}" for name in ("allowed.test", "inside.test", "nowhere.other", "127.0.0.1")]
    )
    ours = AllowListProxy(AddressPolicy(["allowed.test"]), resolve).create_proxy(network)
    await ours.listen(egress.path)
    yield egress
    await ours.aclose()


async def test_a_request_with_an_absolute_url(egress: EgressSocket, provider: Provider) -> None:
    request = (
        f"POST http://Allowed.test:{egress.port}/a/b?c=d {HEAD}content-length: 3\r\nproxy-authorization: x\r\n\r\nabc"
    )
    response = await egress.send(request)
    assert response.startswith(b"HTTP/1.1 200 ")
    assert response.endswith(b'{"fine": true}')
    scope = provider.seen[0]
    assert (scope["path"], scope["query_string"], provider.bodies) == ("/a/b", b"c=d", [b"abc"])
    assert dict(provider.headers)["host"] == f"allowed.test:{egress.port}"
    assert "proxy-authorization" not in dict(provider.headers)


async def test_a_chunked_body_with_expect_continue(egress: EgressSocket, provider: Provider) -> None:
    request = f"PUT http://allowed.test:{egress.port}/ {HEAD}transfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n"
    response = await egress.send(request, then=b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 100 ")
    assert provider.bodies == [b"abcdefg"]


async def test_a_tunnel_carries_bytes_both_ways(egress: EgressSocket, provider: Provider) -> None:
    inner = b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 200000\r\nconnection: close\r\n\r\n" + b"y" * 200_000
    response = await egress.send(f"CONNECT allowed.test:{egress.port} {HEAD}\r\n", then=inner)
    assert response.startswith(b"HTTP/1.1 200 Connection established")
    assert response.endswith(b'{"fine": true}')
    assert provider.bodies == [b"y" * 200_000]


async def test_one_request_per_connection(egress: EgressSocket, provider: Provider) -> None:
    once = f"GET http://allowed.test:{egress.port}/1 {HEAD}\r\n"
    response = await egress.send(once + f"GET http://other.test:{egress.port}/2 {HEAD}\r\n")
    assert response.count(b"HTTP/1.1") == 1
    assert [scope["path"] for scope in provider.seen] == ["/1"]


@pytest.mark.parametrize("form", ["CONNECT {host}:{port}", "GET http://{host}:{port}/"])
@pytest.mark.parametrize(
    "host", ["other.test", "allowed.test.evil.test", "[::1]", "2130706433", "localhost", "169.254.169.254"]
)
async def test_a_host_that_is_not_listed_is_not_looked_up(
    egress: EgressSocket, provider: Provider, form: str, host: str
) -> None:
    response = await egress.send(f"{form.format(host=host, port=egress.port)} {HEAD}\r\n")
    assert response.startswith(b"HTTP/1.1 403 ")
    assert b"is not in this environment's list of allowed hosts" in response
    assert (egress.looked_up, provider.seen) == ([], [])


async def test_another_port_is_not_listed(egress: EgressSocket) -> None:
    assert b" 403 " in await egress.send(f"CONNECT allowed.test:{egress.port + 1} {HEAD}\r\n")
    assert b" 403 " in await egress.send(f"GET http://allowed.test/ {HEAD}\r\n")


@pytest.mark.parametrize("host", ["inside.test", "127.0.0.1"])
async def test_a_listed_name_with_an_internal_address_is_refused(
    egress: EgressSocket, provider: Provider, host: str
) -> None:
    response = await egress.send(f"CONNECT {host}:{egress.port} {HEAD}\r\n")
    assert response.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 502 "))
    assert provider.seen == []


async def test_a_name_without_an_address(egress: EgressSocket) -> None:
    assert b" 502 " in await egress.send(f"CONNECT nowhere.other:{egress.port} {HEAD}\r\n")


@pytest.mark.parametrize(
    "line",
    [
        "GET /origin-form",
        "GET https://allowed.test/",
        "GET ftp://allowed.test/",
        "GET http://user:pass@allowed.test/",
        "GET http:///x",
        "GET http://allowed.test:x/",
        "CONNECT allowed.test",
        "CONNECT user@allowed.test:443",
        "CONNECT allowed.test:443/x",
        "OPTIONS *",
    ],
)
async def test_a_request_without_a_host_is_refused(egress: EgressSocket, line: str) -> None:
    assert (await egress.send(f"{line} {HEAD}\r\n")).startswith(b"HTTP/1.1 400 ")
    assert egress.looked_up == []


@pytest.mark.parametrize("noise", [b"\x16\x03\x01\x02\x00\x01", b"GET " + b"a" * 100_000, b"\r\n" * 50_000])
async def test_invalid_input_is_refused(egress: EgressSocket, noise: bytes) -> None:
    assert not (await egress.send(noise + b"\r\n\r\n")).startswith(b"HTTP/1.1 2")


async def test_closing_the_proxy_ends_its_connections(tmp_path: Path, provider: Provider) -> None:
    async def silent(_scope: Any, receive: Any, _send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    provider.behave = silent
    port = int(provider.url.rpartition(":")[2])

    async def resolve(_host: str, _port: int) -> Sequence[Address]:
        return [ip_address("127.0.0.1")]

    ours = AllowListProxy(AddressPolicy(["a.test"]), resolve).create_proxy(Network.allow([f"a.test:{port}"]))
    await ours.listen(tmp_path / "s")
    reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
    writer.write(f"CONNECT a.test:{port} {HEAD}\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    await ours.aclose()
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()


@pytest.mark.parametrize(
    "lengths",
    [
        "content-length: 3\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 3\r\n",
        "content-length: 3\r\ncontent-length: 5\r\n",
        "content-length: 3, 5\r\n",
        "transfer-encoding: gzip, chunked\r\n",
    ],
)
async def test_a_request_with_two_lengths_is_refused(egress: EgressSocket, provider: Provider, lengths: str) -> None:
    response = await egress.send(f"POST http://allowed.test:{egress.port}/ {HEAD}{lengths}\r\n3\r\nabc\r\n0\r\n\r\n")
    assert response == b"" or response.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))
    assert provider.seen == []
