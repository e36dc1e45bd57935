"""Every requirement but K12 is done; for 20 random ones, the behaviour is removed, and the test marked with it fails.

The requirements are in tests/requirements/requirements.toml, and the changes that remove them in
tests/requirements/mutations.toml. The changes are made one after the other, in a fresh clone.
"""

import random
import secrets
from typing import Final

from tests.requirements.page import list_requirements, load_groups

from bench.ci.mutations import REQUIREMENT_MUTATIONS, find_missed, load_mutations
from bench.prove.figure import Figure, require

_PARTIAL: Final = "K12"
"""Tools take only the keys for models and searches from the server's secrets."""
_REMOVED: Final = 20


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    known = {key: entry for key, entry in list_requirements(load_groups()).items() if key != _PARTIAL}
    unfinished = [key for key, entry in known.items() if entry["state"] != "done"]
    require(holds=not unfinished, otherwise=f"these requirements are not done: {', '.join(unfinished)}")
    by_requirement = {mutation.requirement: mutation for mutation in load_mutations(REQUIREMENT_MUTATIONS)}
    lacking = [key for key in known if key not in by_requirement]
    require(holds=not lacking, otherwise=f"no change removes these requirements: {', '.join(lacking)}")
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    chosen = random.Random(seed).sample([*known], 2 if quick else _REMOVED)
    missed = await find_missed([by_requirement[key] for key in chosen])
    caught = f"{len(chosen) - len(missed)} of {len(chosen)}"
    return Figure(
        headline=f"{len(known)} requirements are done; {caught} removed ones fail their test",
        summary=f"{len(known)} requirements are done, and each has a change that removes it; for {len(chosen)} random "
        f"ones the change was made, and {caught} made the test of the requirement fail"
        + "".join(f"; missed: {name}" for name in missed),
        holds=not missed,
        details={"seed": seed, "removed": [*chosen], "missed": [*missed]},
    )
