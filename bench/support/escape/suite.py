"""Lists all attempts, and runs each in its own environment, watched and judged from outside."""

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.support.escape import files, kernel, network, processes, resources
from bench.support.escape.attempt import PRELUDE, Attempt, Template
from bench.support.escape.backends import CONTROL, Backend
from bench.support.escape.ground import Ground
from bench.support.escape.scene import MARK, Scene

ATTEMPTS: Final = (
    *files.ATTEMPTS, *network.ATTEMPTS, *processes.ATTEMPTS, *kernel.ATTEMPTS, *resources.ATTEMPTS,
)  # fmt: skip
_SWIFT: Final = 15.0
_LOOK_EVERY: Final = 0.1
_GONE_WITHIN: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    attempt: str
    backend: str
    succeeded: bool
    left: int
    """The number of processes that outlived the turn."""
    peak: int
    said: str


async def run_all(backend: Backend, ground: Ground, attempts: Sequence[Attempt]) -> AsyncIterator[Outcome]:
    async with _neighbour(backend, ground):
        for attempt in attempts:
            if backend.named and attempt.pointless_as_owner:
                continue
            try:
                yield await _run(backend, ground, attempt)
            except Exception as error:
                error.add_note(f"in {attempt.name}, {backend.name}")
                raise


def sample(attempts: Sequence[Attempt], *, every: int) -> list[Attempt]:
    """Returns a sample of the fast attempts, which need no measurement while they run."""
    swift = [attempt for attempt in attempts if attempt.watch is None and attempt.seconds <= _SWIFT]
    return swift[::every]


@contextlib.asynccontextmanager
async def _neighbour(backend: Backend, ground: Ground) -> AsyncIterator[None]:
    """Keeps another session on the same machine open, with secrets to steal."""
    shared = ground.token("shared name")
    ground.fields |= {
        "shared": f"footplate-{shared}",
        "other_tree": str(backend.tree("neighbour")),
        "other_home": str(backend.home("neighbour")),
        "code_place": os.fspath(backend.root / "none"),
        "secret_word": ground.token("secret"),
    }
    hold = (
        f"echo {ground.token('other tree')} > secret; echo {ground.token('other home')} > ~/of-home;"
        f"echo {ground.token('other tmp')} > /tmp/footplate-{shared}; touch {ground.token('listed tree')};"
        f"echo {ground.token('other shm')} > /dev/shm/footplate-{shared}; (sleep 100000 &) >/dev/null 2>&1"
    )
    async with backend.open("neighbour", {"VICTIM_KEY": ground.token("variable")}) as environment:
        await environment.shell(hold, timeout=20)
        yield
        await environment.shell(f"rm -f /tmp/footplate-{shared} /dev/shm/footplate-{shared}", timeout=20)


async def _run(backend: Backend, ground: Ground, attempt: Attempt) -> Outcome:
    session, mark = f"attempt-{secrets.token_hex(4)}", secrets.token_hex(8)
    ground.fields["token"] = secrets.token_hex(8)
    async with backend.open(session, {MARK: mark}) as environment:
        scene = Scene(
            ground=ground, environment=environment, mark=mark, tree=backend.tree(session), counted=dict(ground.heard)
        )
        watching = asyncio.create_task(_watch(scene, attempt))
        try:
            attempt.before(scene)
            scene.said = await _perform(backend, scene, attempt)
            if attempt.watch is not None:
                await asyncio.sleep(2 * _LOOK_EVERY)
            if "behind-the-back" in attempt.name:
                await asyncio.sleep(attempt.seconds)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    end = asyncio.get_running_loop().time() + _GONE_WITHIN
    while (left := scene.processes()) and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110 - of the host
        await asyncio.sleep(0.05)
    scene.left = left
    try:
        succeeded = attempt.succeeded(scene)
    finally:
        attempt.after(scene)
        await _clear(scene)
    said = scene.said[-300:].decode(errors="replace")
    return Outcome(
        attempt=attempt.name, backend=backend.name, succeeded=succeeded, left=len(left), peak=scene.peak, said=said
    )


async def _perform(backend: Backend, scene: Scene, attempt: Attempt) -> bytes:
    said = b""
    environment, fields = scene.environment, scene.ground.fields
    for argv, program in ((("bash", "-c"), attempt.shell), (backend.python, attempt.python)):
        if program:
            text = Template(program).substitute(fields)
            whole = text if argv[0] == "bash" else PRELUDE + text
            result = await environment.run([*argv, whole], timeout=attempt.seconds)
            said += result.stdout + result.stderr
    if attempt.tool is not None:
        said += await attempt.tool(scene)
    await asyncio.sleep(0)  # the listeners run on this loop
    return said


async def _watch(scene: Scene, attempt: Attempt) -> None:
    while attempt.watch is not None:
        with contextlib.suppress(OSError):
            scene.peak = max(scene.peak, await asyncio.to_thread(attempt.watch, scene))
        await asyncio.sleep(_LOOK_EVERY)


async def _clear(scene: Scene) -> None:
    remove = await asyncio.create_subprocess_exec("rm", "-rf", "--", str(scene.tree))
    await remove.wait()


def controlled(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Returns the attempts that must succeed where there is no boundary."""
    return [
        attempt
        for attempt in attempts
        if not attempt.uncontrolled and attempt.possible() and (os.geteuid() == 0 or not attempt.root_only)
    ]


def unproven(outcomes: Sequence[Outcome]) -> list[str]:
    """Returns the attempts that failed even without a boundary."""
    return [outcome.attempt for outcome in outcomes if outcome.backend == CONTROL and not outcome.succeeded]


def escapes(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.backend != CONTROL and (outcome.succeeded or outcome.left)]
