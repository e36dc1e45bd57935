"""Neither another local user nor a web page can read, change or stop anything of `footplate dev`.

The other user tries every port of the server's processes, as HTTP, gRPC, PostgreSQL and Redis, and its files, sockets
and processes. The pages, in Chromium, call the same ports from another origin and after DNS rebinding, and also an open
decoy server: it shows that they do reach a port that nothing protects. At the end, everything has to be unchanged and
to respond to its owner.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import httpx2

from bench.prove.figure import Figure, require
from bench.support.browser.chromium import find_browser
from bench.support.shared_host.dev_server import DevServer, open_dev_server
from bench.support.shared_host.other_user import Attempts, attack_as_other_user
from bench.support.shared_host.web_page_attack import attack_by_web_pages
from footplate.cli.profile import dev_server
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.temporal_connection import connect_temporal

_SWEEP_SCHEDULE: Final = "sweep/footplate"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    async with open_dev_server() as dev:
        ports, before = dev.listening_ports(), await _read_state(dev)
        other_user = await attack_as_other_user(dev)
        pages = Attempts(0, []) if quick and find_browser() is None else await _attack_with_decoy(ports)
        after = await _read_state(dev)
        await _check_owner_access(dev)
    achieved = [*other_user.achieved, *pages.achieved]
    changed = [name for name in before if before[name] != after[name]]
    browser = f"{pages.tried} requests by web pages in Chromium" if pages.tried else "no web pages (no Chromium here)"
    by = "another user and web pages" if pages.tried else "another user"
    return Figure(
        headline=f"{other_user.tried + pages.tried:,} attempts by {by}: {len(achieved)} succeeded"
        + (f", {len(changed)} changes" if changed else ""),
        summary=(
            f"{len(ports)} ports: {other_user.at_ports} requests by another local user, "
            f"{other_user.tried - other_user.at_ports} attempts on files, sockets and processes, and {browser}; "
            f"{len(achieved)} succeeded, {len(changed)} of {len(before)} things changed"
            + "".join(f"; {what}" for what in [*achieved[:5], *changed])
        ),
        holds=not achieved and not changed,
        details={"achieved": [*achieved], "changed": [*changed], "tried": other_user.tried + pages.tried},
    )


async def _attack_with_decoy(ports: Sequence[int]) -> Attempts:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(respond, LOOPBACK, decoy := find_free_port()):
        found = await attack_by_web_pages([*ports, decoy])
    decoy_hits = [what for what in found.achieved if f":{decoy}" in what]
    require(holds=bool(decoy_hits), otherwise="the pages do not even reach an open server")
    # Every port is tried alike; the decoy's share does not count.
    tried = found.tried * len(ports) // (len(ports) + 1)
    return Attempts(tried, [what for what in found.achieved if what not in decoy_hits])


async def _read_state(dev: DevServer) -> dict[str, Any]:
    """Returns everything that an attack could change or stop."""
    running = dev_server.find_dev_server(dev.data)
    require(holds=running is not None, otherwise="the owner does not find `footplate dev`")
    assert running is not None
    temporal = await connect_temporal(running.temporal_address)
    schedule = (await temporal.get_schedule_handle(_SWEEP_SCHEDULE).describe()).schedule
    async with _owner_client(dev) as http:
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


async def _check_owner_access(dev: DevServer) -> None:
    """Checks that the same requests succeed with the right secrets."""
    metrics = 0
    for port in dev.listening_ports():
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=5) as http:
            bearer = {"authorization": f"Bearer {dev.secrets()['metrics-token']}"}
            try:
                metrics += (await http.get("/metrics", headers=bearer)).status_code == httpx2.codes.OK
            except httpx2.HTTPError:
                continue  # PostgreSQL and Redis
    require(holds=metrics >= 2, otherwise=f"with the token, {metrics} processes show their metrics, fewer than two")


def _owner_client(dev: DevServer) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=dev.base_url, headers={"x-api-key": dev.key}, trust_env=False)
