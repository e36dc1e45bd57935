"""`python -m bench.prove core-1`: prove a claim, or a group on one stack; print each figure; 0 only if all hold.

With QUICK=1 each takes a small sample and nothing is written; a full run leaves its figure in bench/results.
A quick proof that breaks by an error of its own, which says nothing of the claim, is tried once more. A finding is not.
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

from bench.prove import cluster, registry
from bench.prove.figure import Figure, NotHeld
from bench.prove.registry import Claim, Prove

RESULTS: Final = Path(__file__).resolve().parent.parent / "results"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m bench.prove CLAIM, for example core-1, core or all")
    selected = registry.select(sys.argv[1])
    if not selected:
        known = ", ".join(claim.key for claim in registry.claims())
        sys.exit(f"There is no claim {sys.argv[1]!r}. Known: {known or 'none'}.")
    quick = os.environ.get("QUICK", "") not in {"", "0"}
    sys.exit(0 if asyncio.run(_prove(selected, quick=quick)) else 1)


async def _prove(selected: Sequence[Claim], *, quick: bool) -> bool:
    lines = []
    async with cluster.shared(enabled=quick and len(selected) > 1):
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
    figure, broke = await _tried(prove, quick=quick)
    if broke and quick:
        print(f"{claim.key} broke by an error of its own, and is tried once more", flush=True)
        figure, _ = await _tried(prove, quick=quick)
    return title, figure, time.monotonic() - started


async def _tried(prove: Prove, *, quick: bool) -> tuple[Figure, bool]:
    """And whether it broke before it came to a finding."""
    try:
        return await prove(quick), False
    except NotHeld as finding:
        return Figure(text=str(finding), holds=False), False
    except Exception as error:  # noqa: BLE001 - the others are still worth knowing
        traceback.print_exc()
        return Figure(text=f"could not be shown: {type(error).__name__}: {error}", holds=False), True


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
