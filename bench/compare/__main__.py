"""`python -m bench.compare`: measures every system, prints the table and writes docs/comparison.md.

Names as arguments measure those systems alone and write nothing. With QUICK=1 it takes a small sample.
"""

import asyncio
import os
import sys

from bench.compare.measurements import SYSTEMS, Plan, measure_system
from bench.compare.page import render_table, write_page


async def main() -> None:
    quick = os.environ.get("QUICK", "") not in {"", "0"}
    plan = Plan.of(quick=quick)
    wanted = [name.casefold() for name in sys.argv[1:]]
    kinds = [kind for kind in SYSTEMS if not wanted or kind.__name__.casefold() in wanted]
    if not kinds:
        sys.exit(f"Known systems: {', '.join(kind.__name__.casefold() for kind in SYSTEMS)}.")
    results = [await measure_system(kind, plan) for kind in kinds]
    print(render_table(results, plan), end="")
    if not wanted:
        write_page(results, plan, quick=quick)


if __name__ == "__main__":
    asyncio.run(main())
