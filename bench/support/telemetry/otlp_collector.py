"""Runs a real OTLP collector in its own process: Rotel, which receives OTLP over HTTP and forwards it to the sink."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from bench.prove.figure import NotHeld
from footplate.stack.free_ports import LOOPBACK, find_free_port, is_port_free
from footplate.stack.orphan_processes import wait_until


@asynccontextmanager
async def open_collector(directory: Path, forward_to: str) -> AsyncIterator[str]:
    """Starts the collector and yields its endpoint, the value for `OTEL_EXPORTER_OTLP_ENDPOINT`."""
    port = find_free_port()
    log = directory / "collector.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            str(files("rotel") / "rotel-agent"),
            "start",
            *("--otlp-http-endpoint", f"{LOOPBACK}:{port}"),
            *("--otlp-grpc-endpoint", f"{LOOPBACK}:{find_free_port()}"),
            *("--exporter", "otlp", "--otlp-exporter-protocol", "http", "--otlp-exporter-endpoint", forward_to),
            *("--batch-timeout", "100ms"),
            *("--pid-file", str(directory / "collector.pid"), "--log-file", str(directory / "collector-own.log")),
            stdout=output,
            stderr=output,
            env={},
        )

    async def listening() -> bool:
        return not is_port_free(port, LOOPBACK) or process.returncode is not None

    try:
        if not await wait_until(listening, 10) or process.returncode is not None:
            raise NotHeld(f"the collector did not start: {log.read_text()[-500:]}")
        yield f"http://{LOOPBACK}:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
