"""`footplate dev` attacked by another local user and by web pages in Chromium: nothing listed, changed or stopped.

The other user tries every port that the server's processes listen on, as HTTP, gRPC, PostgreSQL and Redis, and its
files, sockets and processes. The pages call the same ports from another origin and after DNS rebinding, and also a
decoy that answers everybody: it shows that they get through where nothing stops them. In the end everything has to be
as it was, and to answer its owner.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import httpx2

from bench.prove.figure import Figure, require
from bench.support.shared_host.dev_server import DevServer, open_dev_server
from bench.support.shared_host.other_user import Attempts, attack_as_other_user
from bench.support.shared_host.web_page import attack_by_web_pages, find_browser
from footplate.cli import local
from footplate.stack.ports import LOOPBACK, free_port
from footplate.stack.temporal_connection import connect_temporal

_SWEEP: Final = "sweep/footplate"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    async with open_dev_server() as dev:
        ports, before = dev.listening_ports(), await _state(dev)
        other_user = await attack_as_other_user(dev)
        pages = Attempts(0, []) if quick and find_browser() is None else await _attack_with_decoy(ports)
        after = await _state(dev)
        await _owner_is_served(dev)
    achieved = [*other_user.achieved, *pages.achieved]
    changed = [name for name in before if before[name] != after[name]]
    browser = f"{pages.tried} requests of web pages in Chromium" if pages.tried else "no web pages (no Chromium here)"
    return Figure(
        text=(
            f"{len(ports)} ports: {other_user.at_ports} requests of another local user, "
            f"{other_user.tried - other_user.at_ports} attempts on files, sockets and processes, and {browser}; "
            f"{len(achieved)} let through, {len(changed)} of {len(before)} things changed"
            + "".join(f"; {what}" for what in [*achieved[:5], *changed])
        ),
        holds=not achieved and not changed,
        details={"achieved": [*achieved], "changed": [*changed], "tried": other_user.tried + pages.tried},
    )


async def _attack_with_decoy(ports: Sequence[int]) -> Attempts:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, LOOPBACK, decoy := free_port()):
        found = await attack_by_web_pages([*ports, decoy])
    deceived = [what for what in found.achieved if f":{decoy}" in what]
    require(holds=bool(deceived), otherwise="the pages reach not even a server that answers everybody")
    # Every port is tried alike, and the decoy's share shows nothing about the server.
    tried = found.tried * len(ports) // (len(ports) + 1)
    return Attempts(tried, [what for what in found.achieved if what not in deceived])


async def _state(dev: DevServer) -> dict[str, Any]:
    """All that an attack could have changed or stopped."""
    running = local.find(dev.data)
    require(holds=running is not None, otherwise="`footplate dev` is not found by its owner")
    assert running is not None
    temporal = await connect_temporal(running.temporal_address)
    schedule = (await temporal.get_schedule_handle(_SWEEP).describe()).schedule
    async with _owner(dev) as http:
        agents = (await http.get("/v1/agents")).json()["data"]
        sessions = (await http.get("/v1/sessions")).json()["data"]
    return {
        "agents": agents,
        "sessions": sessions,
        "the sweep": (schedule.state.paused, schedule.spec.intervals[0].every),
        "processes": sorted(process.pid for process in dev.processes() if "namespace" not in process.name()),
        "ports": dev.listening_ports(),
        "secrets": dev.secrets(),
    }


async def _owner_is_served(dev: DevServer) -> None:
    """The questions were good ones: with the right secrets they are answered."""
    metrics = 0
    for port in dev.listening_ports():
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=5) as http:
            bearer = {"authorization": f"Bearer {dev.secrets()['metrics-token']}"}
            try:
                metrics += (await http.get("/metrics", headers=bearer)).status_code == httpx2.codes.OK
            except httpx2.HTTPError:
                continue  # PostgreSQL and Redis
    require(holds=metrics >= 2, otherwise=f"with the token {metrics} processes show their metrics, not two")


def _owner(dev: DevServer) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=dev.base_url, headers={"x-api-key": dev.key}, trust_env=False)
