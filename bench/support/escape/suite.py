"""Lists all attempts, and runs each in its own environment, watched and judged from outside."""

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.support.escape import file_attempts, kernel_attempts, network_attempts, process_attempts, resource_attempts
from bench.support.escape.attacked_backends import CONTROL, AttackedBackend
from bench.support.escape.attempt import PRELUDE, Attempt, Template
from bench.support.escape.attempt_context import MARK, AttemptContext
from bench.support.escape.host_fixture import HostFixture

ATTEMPTS: Final = (
    *file_attempts.ATTEMPTS, *network_attempts.ATTEMPTS, *process_attempts.ATTEMPTS, *kernel_attempts.ATTEMPTS,
    *resource_attempts.ATTEMPTS,
)  # fmt: skip
_FAST_SECONDS: Final = 15.0
_MEASURE_INTERVAL: Final = 0.1
_GONE_WITHIN: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    attempt: str
    backend: str
    succeeded: bool
    survivors: int
    """The number of processes that outlived the turn."""
    peak: int
    output: str


async def run_all(
    backend: AttackedBackend, host: HostFixture, attempts: Sequence[Attempt]
) -> AsyncIterator[AttemptOutcome]:
    async with _open_neighbour(backend, host):
        for attempt in attempts:
            if backend.named and attempt.pointless_as_owner:
                continue
            try:
                yield await _run(backend, host, attempt)
            except Exception as error:
                error.add_note(f"in {attempt.name}, {backend.name}")
                raise


def sample(attempts: Sequence[Attempt], *, every: int) -> list[Attempt]:
    """Returns a sample of the fast attempts, which need no measurement while they run."""
    swift = [attempt for attempt in attempts if attempt.watch is None and attempt.seconds <= _FAST_SECONDS]
    return swift[::every]


@contextlib.asynccontextmanager
async def _open_neighbour(backend: AttackedBackend, host: HostFixture) -> AsyncIterator[None]:
    """Keeps another session on the same machine open, with secrets to steal."""
    shared = host.token("shared name")
    host.fields |= {
        "shared": f"footplate-{shared}",
        "other_tree": str(backend.tree("neighbour")),
        "other_home": str(backend.home("neighbour")),
        "code_place": os.fspath(backend.root / "none"),
        "secret_word": host.token("secret"),
    }
    hold = (
        f"echo {host.token('other tree')} > secret; echo {host.token('other home')} > ~/of-home;"
        f"echo {host.token('other tmp')} > /tmp/footplate-{shared}; touch {host.token('listed tree')};"
        f"echo {host.token('other shm')} > /dev/shm/footplate-{shared}; (sleep 100000 &) >/dev/null 2>&1"
    )
    async with backend.open_session("neighbour", {"VICTIM_KEY": host.token("variable")}) as environment:
        await environment.shell(hold, timeout=20)
        yield
        await environment.shell(f"rm -f /tmp/footplate-{shared} /dev/shm/footplate-{shared}", timeout=20)


async def _run(backend: AttackedBackend, host: HostFixture, attempt: Attempt) -> AttemptOutcome:
    session, mark = f"attempt-{secrets.token_hex(4)}", secrets.token_hex(8)
    host.fields["token"] = secrets.token_hex(8)
    async with backend.open_session(session, {MARK: mark}) as environment:
        context = AttemptContext(
            host=host,
            environment=environment,
            mark=mark,
            tree=backend.tree(session),
            earlier_counts=dict(host.received),
        )
        watching = asyncio.create_task(_watch(context, attempt))
        try:
            attempt.before(context)
            context.output = await _perform(backend, context, attempt)
            if attempt.watch is not None:
                await asyncio.sleep(2 * _MEASURE_INTERVAL)
            if "behind-the-back" in attempt.name:
                await asyncio.sleep(attempt.seconds)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    end = asyncio.get_running_loop().time() + _GONE_WITHIN
    while (survivors := context.list_processes()) and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110 - of the host
        await asyncio.sleep(0.05)
    context.survivors = survivors
    try:
        succeeded = attempt.succeeded(context)
    finally:
        attempt.after(context)
        await _clear(context)
    output = context.output[-300:].decode(errors="replace")
    return AttemptOutcome(
        attempt=attempt.name,
        backend=backend.name,
        succeeded=succeeded,
        survivors=len(survivors),
        peak=context.peak,
        output=output,
    )


async def _perform(backend: AttackedBackend, context: AttemptContext, attempt: Attempt) -> bytes:
    output = b""
    environment, fields = context.environment, context.host.fields
    for argv, program in ((("bash", "-c"), attempt.shell), (backend.python, attempt.python)):
        if program:
            text = Template(program).substitute(fields)
            whole = text if argv[0] == "bash" else PRELUDE + text
            result = await environment.run([*argv, whole], timeout=attempt.seconds)
            output += result.stdout + result.stderr
    if attempt.tool is not None:
        output += await attempt.tool(context)
    await asyncio.sleep(0)  # the listeners run on this loop
    return output


async def _watch(context: AttemptContext, attempt: Attempt) -> None:
    while attempt.watch is not None:
        with contextlib.suppress(OSError):
            context.peak = max(context.peak, await asyncio.to_thread(attempt.watch, context))
        await asyncio.sleep(_MEASURE_INTERVAL)


async def _clear(context: AttemptContext) -> None:
    remove = await asyncio.create_subprocess_exec("rm", "-rf", "--", str(context.tree))
    await remove.wait()


def select_controlled(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Returns the attempts that must succeed where there is no boundary."""
    return [
        attempt
        for attempt in attempts
        if not attempt.uncontrolled and attempt.possible() and (os.geteuid() == 0 or not attempt.root_only)
    ]


def find_failed_controls(outcomes: Sequence[AttemptOutcome]) -> list[str]:
    """Returns the attempts that failed even without a boundary."""
    return [outcome.attempt for outcome in outcomes if outcome.backend == CONTROL and not outcome.succeeded]


def find_escapes(outcomes: Sequence[AttemptOutcome]) -> list[AttemptOutcome]:
    return [outcome for outcome in outcomes if outcome.backend != CONTROL and (outcome.succeeded or outcome.survivors)]
