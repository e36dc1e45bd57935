"""Runs Chromium without a screen, and drives one page through the DevTools protocol."""

import asyncio
import itertools
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect

from bench.prove.figure import NotHeld
from footplate.stack.orphan_processes import wait_until

_START_SECONDS: Final = 60.0
_RESPONSE_SECONDS: Final = 60.0
_FLAGS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-proxy-server"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
    "--remote-debugging-port=0",
)
_ENTER: Final = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
_INTERRUPT: Final = {"key": "c", "code": "KeyC", "windowsVirtualKeyCode": 67, "modifiers": 2}


def find_browser() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._lock = asyncio.Lock()

    async def open(self, url: str) -> None:
        await self._call("Page.navigate", url=url)

        async def is_loaded() -> bool:
            return bool(await self.evaluate("document.readyState === 'complete'"))

        if not await wait_until(is_loaded, _START_SECONDS):
            raise NotHeld(f"the page {url} did not load")

    async def evaluate(self, expression: str) -> Any:
        found = await self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise NotHeld(f"{expression} failed in the page: {found['exceptionDetails']}")
        return found["result"].get("value")

    async def type_line(self, text: str) -> None:
        """Enters this text as a keyboard does, and presses Enter."""
        await self._call("Input.insertText", text=text)
        await self._press(_ENTER)

    async def press_interrupt(self) -> None:
        await self._press(_INTERRUPT)

    async def resize(self, width: int, height: int) -> None:
        """Changes the size of the window, in pixels."""
        await self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def _press(self, key: dict[str, Any]) -> None:
        await self._call("Input.dispatchKeyEvent", type="keyDown" if "text" in key else "rawKeyDown", **key)
        await self._call("Input.dispatchKeyEvent", type="keyUp", **{**key, "text": ""})

    async def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        async with self._lock, asyncio.timeout(_RESPONSE_SECONDS):
            number = next(self._numbers)
            await self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
            async for message in self._connection:
                response: dict[str, Any] = json.loads(message)
                if response.get("id") == number:
                    if "error" in response:
                        raise NotHeld(f"Chromium refused {method}: {response['error']}")
                    result: dict[str, Any] = response["result"]
                    return result
        raise NotHeld("Chromium has closed the connection")


@asynccontextmanager
async def open_page() -> AsyncIterator[Page]:
    """Starts Chromium with a new profile."""
    program = find_browser()
    if program is None:
        raise NotHeld("there is no Chromium on this machine (Debian: apt install chromium)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program,
            *_FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            env={"PATH": "/usr/bin:/bin", "HOME": profile},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            address = await _find_page(Path(profile) / "DevToolsActivePort")
            async with connect(address, max_size=None, proxy=None) as connection:
                yield Page(connection)
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def _find_page(port_file: Path) -> str:
    """Returns the WebSocket address of the first page. Chromium writes its port and browser address to a file."""

    async def has_started() -> bool:
        return len(_read_lines(port_file)) == 2

    if not await wait_until(has_started, _START_SECONDS):
        raise NotHeld("Chromium did not start")
    port, path = _read_lines(port_file)
    async with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as browser:
        await browser.send(json.dumps({"id": 1, "method": "Target.getTargets"}))
        found = json.loads(await browser.recv())["result"]["targetInfos"]
    target = next(re.sub(r"\W", "", each["targetId"]) for each in found if each["type"] == "page")
    return f"ws://127.0.0.1:{port}/devtools/page/{target}"


def _read_lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.is_file() else []
