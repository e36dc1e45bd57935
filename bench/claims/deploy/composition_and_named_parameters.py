"""Only `wiring` builds adapters, swapped arguments of an append are noticed, and long lists of SQL values have names.

The import contracts are checked. A message to an API becomes a turn of a worker, both built in one process by the
functions of production. The statements are counted by their positional parameters. The tests run that swap any two
arguments of `append_turn` and that compare every call of a statement with its parameters.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Final

from bench.ci import fresh_clone
from bench.prove.figure import Figure
from bench.support import sql_parameters
from bench.support.pytest_suite import run_tests
from footplate.domain.json import JsonObject
from footplate.store.database import PARAMETERS

_CONTRACT: Final = "Only wiring builds adapters KEPT"
_COMPOSITION_TESTS: Final = "tests/integration/engine/test_composition.py"
_TESTS: Final = ("tests/unit/store/test_sql_parameters.py", "tests/integration/store/test_append_parameters.py")


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    del quick  # both sizes are the same: nothing in it takes long
    contracts = await fresh_clone.run(str(Path(sys.executable).parent / "lint-imports"), "--no-cache")
    holds_contract = contracts.exit_code == 0 and _CONTRACT in contracts.output
    by_count = Counter(count for name, count in sql_parameters.count_positional().items() if name not in PARAMETERS)
    counted: JsonObject = {str(count): by_count[count] for count in sorted(by_count)}
    faults = [*sql_parameters.find_long_lists(), *sql_parameters.find_wrong_calls()]
    await run_tests(_COMPOSITION_TESTS)
    tests = await run_tests(*_TESTS)
    listed = ", ".join(f"{number} with {count}" for count, number in counted.items())
    named = len(PARAMETERS["append_turn"])
    contract = "kept" if holds_contract else "broken"
    return Figure(
        headline=f"contract {contract}; at most {max(by_count)} positional parameters; {len(faults)} wrong calls",
        summary=f"The import contract `{_CONTRACT.removesuffix(' KEPT')}` is {contract}. An API and a worker that a "
        f"test built with the functions of production ran a turn. {len(PARAMETERS)} statements name their parameters, "
        f"`append_turn` all {named}; of the others, {listed} positional parameters (limit "
        f"{sql_parameters.MAX_POSITIONAL}). Each of the {named * (named - 1) // 2} pairs of arguments of an append was "
        f"swapped and noticed ({len(tests)} tests)" + "".join(f"; {fault}" for fault in faults[:5]),
        holds=holds_contract and not faults and max(by_count) <= sql_parameters.MAX_POSITIONAL,
        details={"positional": counted, "named": {name: [*names] for name, names in PARAMETERS.items()}},
    )
