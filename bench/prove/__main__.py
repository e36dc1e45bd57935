"""`python -m bench.prove core-1 …`: prove claims or groups of them; print each figure; 0 only if all hold.

With QUICK=1 each takes a small sample and nothing is written; a full run leaves its figure in bench/results.
"""

import asyncio
import datetime as dt
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.prove import cluster, forked_program, registry
from bench.prove.figure import Figure, NotHeld
from bench.prove.registry import Claim, Prove

RESULTS: Final = Path(__file__).resolve().parent.parent / "results"


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python -m bench.prove CLAIM…, for example core-1, core or all")
    selected: list[Claim] = []
    for wanted in sys.argv[1:]:
        found = registry.select(wanted)
        if not found:
            known = ", ".join(claim.key for claim in registry.claims())
            sys.exit(f"There is no claim {wanted!r}. Known: {known or 'none'}.")
        selected += found
    quick = os.environ.get("QUICK", "") not in {"", "0"}
    sys.exit(0 if asyncio.run(_prove(selected, quick=quick)) else 1)


async def _prove(selected: Sequence[Claim], *, quick: bool) -> bool:
    lines = []
    async with cluster.shared(enabled=quick and len(selected) > 1), forked_program.preloaded(enabled=quick):
        for claim in selected:
            title, figure, seconds = await _prove_one(claim, quick=quick)
            lines.append(f"{'holds' if figure.holds else 'FAILS'}  {claim.key}: {figure.text}  ({seconds:.0f} s)")
            print(f"{title}\n{lines[-1]}", flush=True)
            if not quick:
                _write(claim, title, figure, seconds)
    if len(lines) > 1:
        print("\n" + "\n".join(lines), flush=True)
    return all(line.startswith("holds") for line in lines)


async def _prove_one(claim: Claim, *, quick: bool) -> tuple[str, Figure, float]:
    started = time.monotonic()
    title, prove = claim.load()
    print(f"\n== {claim.key}{' (quick)' if quick else ''}", flush=True)
    return title, await _find(prove, quick=quick), time.monotonic() - started


async def _find(prove: Prove, *, quick: bool) -> Figure:
    try:
        return await prove(quick)
    except NotHeld as finding:
        return Figure(text=str(finding), holds=False)
    except Exception as error:  # noqa: BLE001 - the others are still worth knowing
        traceback.print_exc()
        return Figure(text=f"could not be shown: {type(error).__name__}: {error}", holds=False)


def _write(claim: Claim, title: str, figure: Figure, seconds: float) -> None:
    RESULTS.mkdir(exist_ok=True)
    record = {
        "claim": claim.key,
        "title": title,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "holds": figure.holds,
        "figure": figure.text,
        "seconds": round(seconds),
        "details": figure.details,
    }
    (RESULTS / f"{claim.key}.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
