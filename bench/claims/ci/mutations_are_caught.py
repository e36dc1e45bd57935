"""CI fails for each of the known defects in bench/ci/mutations.toml.

This shows that merging tests and shrinking samples lost no coverage. A sample makes two of the defects.
"""

from typing import Final

from bench.ci.mutations import find_missed, load_mutations
from bench.prove.figure import Figure, require

_MIN_MUTATIONS: Final = 30


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    known = load_mutations()
    require(
        holds=len(known) >= _MIN_MUTATIONS, otherwise=f"there are {len(known)} mutations, fewer than {_MIN_MUTATIONS}"
    )
    not_in_ci = [mutation.name for mutation in known if not mutation.is_in_ci]
    require(holds=not not_in_ci, otherwise=f"CI does not run the tests that should catch {not_in_ci}")
    chosen = known[:2] if quick else known
    missed = await find_missed(chosen)
    return Figure(
        headline=f"{len(chosen) - len(missed)} of {len(chosen)} defects fail CI",
        summary=f"{len(chosen) - len(missed)} of {len(chosen)} defects fail CI"
        + "".join(f"; missed: {name}" for name in missed),
        holds=not missed,
        details={"missed": [*missed], "mutations": [mutation.name for mutation in known]},
    )
