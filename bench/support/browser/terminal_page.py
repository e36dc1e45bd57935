"""A web page with xterm.js on a session's terminal, for claims and tests. The server serves no such page itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import NotHeld
from bench.support.browser import chromium
from bench.support.browser.chromium import Page
from bench.support.sdk import npm
from footplate.stack.free_ports import LOOPBACK
from footplate.stack.orphan_processes import wait_until

_FOLDER: Final = Path(__file__).parent
_PACKAGES: Final = _FOLDER / "xterm"
_ASSETS: Final = {
    "/xterm.js": ("@xterm/xterm/lib/xterm.js", "text/javascript"),
    "/xterm.css": ("@xterm/xterm/css/xterm.css", "text/css"),
    "/addon-fit.js": ("@xterm/addon-fit/lib/addon-fit.js", "text/javascript"),
}
_PATIENCE: Final = 60.0


class TerminalPage:
    def __init__(self, page: Page, base_url: str, key: str) -> None:
        self.page = page
        self._socket_url = base_url.replace("http", "ws", 1)
        self._key = key

    async def attach(self, session_id: str, *, write: bool = True) -> None:
        """Connects to the terminal of the session, and waits until the server has accepted."""
        url = f"{self._socket_url}/v1/sessions/{session_id}/terminal/ws{'?write=true' if write else ''}"
        await self.page.evaluate(f"state.messages = []; attach({url!r}, {self._key!r})")
        await self.has_message("attached")

    async def detach(self) -> None:
        await self.page.evaluate("detach()")
        await self.has_message("disconnected")

    async def has_message(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Waits for a message of this type, and returns the last one."""
        found: list[dict[str, Any]] = []

        async def arrived() -> bool:
            messages = await self.page.evaluate("state.messages")
            found[:] = [message for message in messages if message["type"] == kind]
            return len(found) >= count

        if not await wait_until(arrived, _PATIENCE):
            raise NotHeld(f"the page received no {kind!r} message: {await self.page.evaluate('state.messages')}")
        return found[-1]

    async def shows(self, text: str) -> None:
        async def is_shown() -> bool:
            return text in await self.screen()

        if not await wait_until(is_shown, _PATIENCE):
            raise NotHeld(f"the page does not show {text!r} but {(await self.screen())[-500:]!r}")

    async def screen(self) -> str:
        """Returns all lines of the terminal, once everything that has arrived is drawn."""

        async def is_drawn() -> bool:
            return bool(await self.page.evaluate("state.pending === 0"))

        await wait_until(is_drawn, _PATIENCE)
        return str(await self.page.evaluate("screenText()"))

    async def size(self) -> tuple[int, int]:
        columns, rows = await self.page.evaluate("[terminal.cols, terminal.rows]")
        return columns, rows

    async def sent_keys(self) -> str:
        """Returns everything that xterm.js has sent as keys, whoever made it do so."""
        return str(await self.page.evaluate("state.sent"))

    async def title_changes(self) -> int:
        return int(await self.page.evaluate("state.titles"))


@asynccontextmanager
async def open_terminal_page(base_url: str, key: str, port: int) -> AsyncIterator[TerminalPage]:
    """Opens the page in Chromium. The API must allow the origin `http://127.0.0.1:{port}`."""
    modules = await npm.install_packages(_PACKAGES) / "node_modules"
    server = ThreadingHTTPServer((LOOPBACK, port), partial(_Handler, modules))
    serving = asyncio.create_task(asyncio.to_thread(server.serve_forever))
    try:
        async with chromium.open_page() as page:
            await page.open(f"http://{LOOPBACK}:{port}/")
            yield TerminalPage(page, base_url, key)
    finally:
        await asyncio.to_thread(server.shutdown)
        await serving
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, modules: Path, *arguments: Any) -> None:
        self._modules = modules
        super().__init__(*arguments)

    def do_GET(self) -> None:
        if self.path == "/":
            self._respond(200, (_FOLDER / "terminal_page.html").read_bytes(), "text/html; charset=utf-8")
        elif self.path in _ASSETS:
            name, media_type = _ASSETS[self.path]
            self._respond(200, (self._modules / name).read_bytes(), media_type)
        else:
            self._respond(404, b"", "text/plain")

    def log_message(self, *_: object, **__: object) -> None: ...

    def _respond(self, status: int, content: bytes, media_type: str) -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
