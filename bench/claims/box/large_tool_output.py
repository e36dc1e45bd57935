"""Whatever a tool prints, its result is correct and the worker's memory stays small.

The cases are 10 MB of output, a line of 5 MB, binary data, a gigabyte of `yes`, and a `yes` that a timeout ends. They
run through the whole stack, in every backend. The log has the beginning and the end of each stream; the object store
has the rest.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import psutil

from bench.prove.figure import Figure, require
from bench.support import environment_backends
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from footplate.domain.sessions import events
from footplate.testing import replies, text, tool

_MAX_GROWTH_BYTES: Final = 30 << 20
_MIB: Final = 1 << 20
_STORED_BYTES: Final = 10 * _MIB
_HALF_OF_YES: Final = b"yes\n" * (_STORED_BYTES // 8)
_SAMPLE_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class OutputCase:
    name: str
    command: str
    is_correct: Callable[[dict[str, Any], bytes], bool]
    """Checks the result's `command` and the standard output in the object store."""
    seconds: float = 60


def _equals(expected: bytes) -> Callable[[dict[str, Any], bytes], bool]:
    def is_correct(command: dict[str, Any], stored: bytes) -> bool:
        digest = hashlib.sha256(expected).digest()
        whole = command["stdout"]["bytes"] == len(expected) and hashlib.sha256(stored).digest() == digest
        return whole and command["status"] == "completed" and command["exit_code"] == 0

    return is_correct


def _has_both_ends(command: dict[str, Any], stored: bytes) -> bool:
    """Output above the storage limit: both ends are stored, with a line that gives the number of omitted bytes."""
    omission_line = f"\n[... {command['stdout']['bytes'] - _STORED_BYTES} bytes omitted ...]\n".encode()
    return (
        stored == _HALF_OF_YES + omission_line + _HALF_OF_YES
        and command["stdout"]["bytes"] == 1 << 30
        and command["exit_code"] == 0
    )


def _is_cut_by_timeout(command: dict[str, Any], stored: bytes) -> bool:
    return (
        command["status"] == "timed_out" and command["stdout"]["bytes"] > _STORED_BYTES and stored[:8] == b"yes\nyes\n"
    )


_NUMBERS: Final = b"".join(b"%d\n" % number for number in range(1, 1_400_001))[: 10 * 1000 * 1000]
OUTPUT_CASES: Final = (
    OutputCase("10 MB", "seq 1 1400000 | head -c 10000000", _equals(_NUMBERS)),
    OutputCase("a line of 5 MB", "head -c 5000000 /dev/zero | tr '\\0' x", _equals(b"x" * 5_000_000)),
    OutputCase(
        "binary",
        "for n in $(seq 1 4000); do printf '\\377\\376\\0\\1\\200'; head -c 95 /dev/zero; done",
        _equals((b"\xff\xfe\0\1\x80" + bytes(95)) * 4000),
    ),
    OutputCase("1 GB of yes", "yes yes | head -c 1073741824", _has_both_ends),
    OutputCase("yes until its limit", "yes yes", _is_cut_by_timeout, seconds=3),
)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    rounds = 1 if quick else 5
    grown: dict[str, dict[str, int]] = {}
    for backend in environment_backends.available_backends()[: 1 if quick else None]:
        async with (
            environment_backends.backend_settings(backend) as settings,
            open_cluster(environment=settings) as cluster,
            Client(cluster) as client,
        ):
            await _measure_growth(cluster, client, OutputCase("warm", "seq 1 100000", lambda *_: True))
            grown[backend] = {
                flood.name: max([await _measure_growth(cluster, client, flood) for _ in range(rounds)])
                for flood in OUTPUT_CASES
            }
    worst = max(growth for floods in grown.values() for growth in floods.values())
    by_backend = "; ".join(
        f"{backend}: {', '.join(f'{name} {growth / _MIB:.0f}' for name, growth in floods.items())}"
        for backend, floods in grown.items()
    )
    return Figure(
        headline=f"all results right; the worker grew by at most {worst / _MIB:.0f} MiB (limit "
        f"{_MAX_GROWTH_BYTES / _MIB:.0f})",
        summary=f"all results are correct and complete in the object store; growth of the worker in MiB: {by_backend} "
        f"(limit {_MAX_GROWTH_BYTES / _MIB:.0f})",
        holds=worst <= _MAX_GROWTH_BYTES,
        details={backend: dict(floods) for backend, floods in grown.items()},
    )


async def _measure_growth(cluster: Cluster, client: Client, case: OutputCase) -> int:
    """Runs one command in a turn; returns the largest growth of the worker's memory, in bytes."""
    call = tool("bash", {"command": case.command, "timeout_ms": int(case.seconds * 1000)})
    await cluster.model.install("flood", replies([call], [text("Well.")]))
    session_id = await client.session()
    pid = cluster.workers[0].pid
    assert pid is not None
    worker = psutil.Process(pid)
    before = worker.memory_info().rss
    peak = _PeakMemory(worker)
    async with client.stream(session_id) as stream:
        await client.send_text(session_id, "Go. [[script:flood]]")
        seen = await stream.until_idle(patience=case.seconds + 30)
    peak_bytes = await peak.stop()
    (result,) = [event for event in seen if event["type"] == events.AGENT_TOOL_RESULT]
    command = result["command"]
    key = command["stdout"].get("object")
    stored = (cluster.directory / "data" / "objects" / key).read_bytes() if key else b""
    require(
        holds=case.is_correct(command, stored),
        otherwise=f"{case.name}: {len(stored)} bytes stored, the result is {str(command)[:400]}",
    )
    return max(0, peak_bytes - before)


class _PeakMemory:
    """Samples the memory of a process and records the peak."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._peak = process.memory_info().rss
        self._task = asyncio.create_task(self._sample())

    async def stop(self) -> int:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        return self._peak

    async def _sample(self) -> None:
        while True:
            self._peak = max(self._peak, self._process.memory_info().rss)
            await asyncio.sleep(_SAMPLE_SECONDS)
