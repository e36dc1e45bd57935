"""CI notices what it noticed before its tests were merged and its samples cut: each known defect fails it.

The defects are in bench/ci/mutations.toml. A sample makes two of them.
"""

from typing import Final

from bench.ci.mutations import load_mutations, missed_mutations
from bench.prove.figure import Figure, require

_WANTED: Final = 30


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    known = load_mutations()
    require(holds=len(known) >= _WANTED, otherwise=f"there are {len(known)} mutations, not {_WANTED}")
    not_in_ci = [mutation.name for mutation in known if not mutation.is_in_ci]
    require(holds=not not_in_ci, otherwise=f"CI does not run what should catch {not_in_ci}")
    chosen = known[:2] if quick else known
    missed = await missed_mutations(chosen)
    return Figure(
        text=f"{len(chosen) - len(missed)} of {len(chosen)} defects fail CI"
        + "".join(f"; missed: {name}" for name in missed),
        holds=not missed,
        details={"missed": [*missed], "mutations": [mutation.name for mutation in known]},
    )
