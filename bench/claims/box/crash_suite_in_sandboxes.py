"""The crash suite (core-2 and core-3) also holds in every other backend that isolates commands.

core-2 and core-3 themselves use the default backend. This claim runs both at the same size in the others.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bench.claims.core import kill_any_process, stale_worker_is_fenced
from bench.prove.figure import Figure
from bench.support import environment_backends

_UNSANDBOXED: Final = "unsandboxed"
# A sample kills workers only: the other failures of core-2 do not depend on where commands run.
_QUICK_SIZE: Final = replace(kill_any_process.QUICK, apis=0, temporal=0, postgres=0, redis=0)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    other_backends = [
        name
        for name in environment_backends.available_backends()
        if name not in {_UNSANDBOXED, environment_backends.default_backend()}
    ]
    figures = [
        figure
        for backend in other_backends
        for figure in (
            await kill_any_process.prove_at(_QUICK_SIZE if quick else kill_any_process.FULL, backend),
            await stale_worker_is_fenced.prove_in(backend, quick=quick),
        )
    ]
    absent = sorted(
        set(environment_backends.list_backends()) - {_UNSANDBOXED, *environment_backends.available_backends()}
    )
    missing = [f"not available on this machine: {', '.join(absent)}"] if absent else []
    summaries = [*(figure.summary for figure in figures), *missing]
    return Figure(
        headline=_headline(other_backends, figures),
        summary="; ".join(
            [*summaries, f"core-2 and core-3 themselves cover `{environment_backends.default_backend()}`"]
        ),
        holds=bool(figures) and all(figure.holds for figure in figures),
        details={str(number): figure.details for number, figure in enumerate(figures)},
    )


def _headline(other_backends: Sequence[str], figures: Sequence[Figure]) -> str:
    failed = sum(not figure.holds for figure in figures)
    if failed:
        return f"{failed} of {len(figures)} crash suites fail in {'/'.join(other_backends)}"
    if not figures:
        return "no other backend is available on this machine"
    return f"crash suite in {other_backends[0]}: {figures[0].headline.partition(': ')[2]}"
