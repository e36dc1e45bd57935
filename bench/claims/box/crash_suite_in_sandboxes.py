"""A boundary costs nothing of the promise: the crash suite (core-2, core-3) holds inside every backend that has one.

core-2 and core-3 themselves run in the default one; here are the others, at the same size.
"""

from dataclasses import replace
from typing import Final

from bench.claims.core import kill_any_process, stale_worker_is_fenced
from bench.prove.figure import Figure
from bench.support import backends

_WITHOUT: Final = "unsandboxed"
# What core-2 breaks besides workers has nothing to do with where commands run: a small sample leaves it out.
_SMALL: Final = replace(kill_any_process.QUICK, apis=0, temporal=0, postgres=0, redis=0)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    others = [name for name in backends.present() if name not in {_WITHOUT, backends.default()}]
    figures = [
        figure
        for backend in others
        for figure in (
            await kill_any_process.prove_at(_SMALL if quick else kill_any_process.FULL, backend),
            await stale_worker_is_fenced.prove_in(backend, quick=quick),
        )
    ]
    absent = sorted(set(backends.known()) - {_WITHOUT, *backends.present()})
    texts = [figure.text for figure in figures] + ([f"not on this machine: {', '.join(absent)}"] if absent else [])
    return Figure(
        text="; ".join([*texts, f"in `{backends.default()}` they are core-2 and core-3 themselves"]),
        holds=bool(figures) and all(figure.holds for figure in figures),
        details={str(number): figure.details for number, figure in enumerate(figures)},
    )
