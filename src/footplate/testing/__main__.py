"""Runs the scripted model, a model server for tests, as a process: `python -m footplate.testing --script FILE`.

Its first line of output is `{"url": …, "pid": …, "key": …}`. Requests must send this API key: the value of
FOOTPLATE_SCRIPTED_KEY, or a random key. With `--any-key`, any key is accepted. With `--exit-with-stdin`, the process
ends when its standard input is closed, for example because its parent was killed.
"""

import argparse
import asyncio
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import Final

import orjson
import uvloop

from footplate.testing import script_json
from footplate.testing.model_scripts import Script, ScriptError
from footplate.testing.scripted_model import ScriptedModel
from footplate.testing.server.request_journal import MAX_BODY_BYTES

KEY_VARIABLE: Final = "FOOTPLATE_SCRIPTED_KEY"


class _UntilClosed(asyncio.Protocol):
    def __init__(self, closed: asyncio.Event) -> None:
        self._closed = closed

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self._closed.set()


def main() -> None:
    options = _options().parse_args()
    scripts: dict[str, Script] = {}
    try:
        for path in options.script:
            scripts.update(script_json.load_file(path))
    except (OSError, ScriptError) as error:
        sys.exit(f"footplate.testing: {error}")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(scripts, options))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m footplate.testing", description="Run a scripted model server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0, the default, picks a free one")
    parser.add_argument(
        "--script", type=Path, action="append", default=[], help="a JSON file with scripts; may be repeated"
    )
    parser.add_argument(
        "--keep-bytes", type=int, default=MAX_BODY_BYTES, help="size limit of the recorded request bodies"
    )
    parser.add_argument(
        "--any-key", action="store_true", help="accept requests with any API key, so every local user can send them"
    )
    parser.add_argument("--exit-with-stdin", action="store_true", help="exit when standard input is closed")
    return parser


async def _serve(scripts: dict[str, Script], options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if options.exit_with_stdin:
        await loop.connect_read_pipe(lambda: _UntilClosed(stop), sys.stdin)
    key = None if options.any_key else os.environ.get(KEY_VARIABLE) or secrets.token_hex(24)
    model = ScriptedModel(scripts, host=options.host, port=options.port, keep_bytes=options.keep_bytes, key=key)
    async with model:
        sys.stdout.buffer.write(orjson.dumps({"url": model.url, "pid": os.getpid(), "key": key}) + b"\n")
        sys.stdout.buffer.flush()
        await stop.wait()


if __name__ == "__main__":
    main()
